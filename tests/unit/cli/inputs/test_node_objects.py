"""Commands say the same of a cluster in both forms, and name what is wrong in lines."""

import json
from pathlib import Path

import pytest
import yaml

from numapin_cli.main import main
from support.fakes.worlds.described_cluster import World, cluster
from support.values.forms import all_in_three
from support.values.operator import Body, pod_body

Capture = pytest.CaptureFixture[str]

COMMANDS = (
    "get",
    "get -o wide",
    "get node-1 -o json",
    "explain b -o json",
    "explain a -o wide",
    "explain node/node-1",
    "explain policy/web",
    "plan -o diff",
    "plan --node node-1 -o json",
    "migrate --back --node node-1",
)


@pytest.fixture(scope="module")
def world() -> World:
    return cluster(
        pod_body("a", "4"),
        pod_body("b", "4", bound="2026-01-02T00:00:00Z"),
        pod_body("pending", "4", node=""),
    )


def said(capsys: Capture, words: str, *files: Path) -> tuple[int, str, str]:
    """What a command says of the objects of some files."""
    flags = [f"--cluster={file}" for file in files]
    status = main([*words.split(), *flags])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def written(file: Path, items: list[Body]) -> Path:
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return file


@pytest.mark.parametrize("words", COMMANDS)
def test_one_object_and_three_say_the_same(
    world: World, tmp_path: Path, capsys: Capture, words: str
) -> None:
    items = json.loads(world.dump())["items"]
    expected = said(capsys, words, written(tmp_path / "one.json", items))
    apart = all_in_three(items)
    assert {"NodeReport", "NodeTopology"} < {one["kind"] for one in apart}
    assert said(capsys, words, written(tmp_path / "three.json", apart)) == expected
    by_kind: dict[str, list[Body]] = {}
    for one in apart:
        by_kind.setdefault(one["kind"], []).append(one)
    files = [written(tmp_path / f"{kind}.json", each) for kind, each in by_kind.items()]
    assert said(capsys, words, *files) == expected


def test_a_wrong_line_is_named(world: World, tmp_path: Path, capsys: Capture) -> None:
    items = all_in_three(json.loads(world.dump())["items"])
    for one in items:
        if one["kind"] == "NodeAssignment" and one["metadata"]["name"] == "node-1":
            one["spec"]["assigned"] = ["default/a main cpus=2-5 memory=1Gi since=1 uid=uid-a"]
    file = written(tmp_path / "now.json", items)
    status, out, _ = said(capsys, "get node-1 -o json", file)
    (node,) = json.loads(out)["nodes"]
    assert status == 0
    assert node["reason"] == "spec.assigned[0]: memory should be like 0:1Gi, not '1Gi'"
    _, out, _ = said(capsys, "get", file)
    assert "unreadable" in out
    status, out, _ = said(capsys, "explain node/node-1", file)
    assert status == 3
    assert "spec.assigned[0]: memory should be like 0:1Gi" in " ".join(out.split())


def test_a_report_that_is_listed_twice_is_named(
    world: World, tmp_path: Path, capsys: Capture
) -> None:
    items = all_in_three(json.loads(world.dump())["items"])
    reports = [one for one in items if one["kind"] == "NodeReport"]
    files = written(tmp_path / "now.json", items), written(tmp_path / "again.json", reports)
    status, _, error = said(capsys, "get", *files)
    assert status == 1
    assert f"{files[1]}: document 1: items[0]: NodeReport node-1 is listed twice" in error


def test_reports_without_an_assignment_are_about_none(
    world: World, tmp_path: Path, capsys: Capture
) -> None:
    items = all_in_three(json.loads(world.dump())["items"])
    file = written(tmp_path / "now.json", [one for one in items if one["kind"] != "NodeAssignment"])
    status, out, error = said(capsys, "get -o json", file)
    assert (status, error) == (0, "")
    assert [one["policy"] for one in json.loads(out)["nodes"]] == [None, None]


def test_a_file_of_a_person_may_have_them_too(
    world: World, tmp_path: Path, capsys: Capture
) -> None:
    items = json.loads(world.dump())["items"]
    text = yaml.safe_dump_all(all_in_three(items))
    (tmp_path / "all.yaml").write_text(text)
    assert main(["plan", "-f", str(tmp_path / "all.yaml"), "-o", "json"]) == 0
    of_three = json.loads(capsys.readouterr().out)
    (tmp_path / "all.yaml").write_text(yaml.safe_dump_all(items))
    assert main(["plan", "-f", str(tmp_path / "all.yaml"), "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == of_three
