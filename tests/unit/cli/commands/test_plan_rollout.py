"""`numapin plan` of an edit that reaches a few nodes at a time: it shows the end, and says so."""

import json
from pathlib import Path

import pytest

from numapin_cli.main import main
from support.fakes.worlds.described_cluster import cluster
from support.values.operator import Body


def plan(folder: Path, spec: Body, *arguments: str) -> int:
    """Plan an edit of the policy of a cluster with two nodes."""
    kind = {"apiVersion": "numapin.io/v1beta1", "kind": "CpuPolicy"}
    (folder / "edit.json").write_text(
        json.dumps(kind | {"metadata": {"name": "web"}, "spec": spec})
    )
    (folder / "now.json").write_text(cluster().dump())
    files = ["--cluster", str(folder / "now.json"), "-f", str(folder / "edit.json")]
    return main(["plan", *files, *arguments])


@pytest.mark.parametrize("arguments", [("-o", "diff"), ("-o", "json"), ("--node", "node-2")])
def test_an_edit_of_more_nodes_than_change_at_a_time_is_said_to_be_shown_as_it_ends(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    edit = {"reserved": {"cpus": "6-7"}, "rollout": {"maxConcurrent": 1}}
    assert plan(tmp_path, edit, *arguments) == 0
    assert capsys.readouterr().err == (
        "policy web: 2 nodes change, at most 1 at a time (rollout.maxConcurrent: 1);"
        " shown is the end\n"
    )


@pytest.mark.parametrize(
    "edit",
    [
        {"reserved": {"count": 2}},
        {"reserved": {"cpus": "6-7"}, "rollout": {"maxConcurrent": "100%"}},
        {"reserved": {"cpus": "6-7"}, "nodeSelector": {"pool": "node-1"}},
        {"mode": "None"},
    ],
    ids=["nothing-changes", "all-at-once", "one-node", "mode-none"],
)
def test_what_reaches_its_nodes_at_once_is_shown_without_a_remark(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], edit: Body
) -> None:
    assert plan(tmp_path, edit, "-o", "diff") == 0
    assert not capsys.readouterr().err
