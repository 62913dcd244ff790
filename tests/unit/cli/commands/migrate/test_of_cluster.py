"""`numapin migrate` with the NodeAssignments of a cluster, and the way back to the kubelet."""

import json
from pathlib import Path

import pytest

from numapin_cli.main import main
from support.fakes.worlds.described_cluster import World, cluster
from support.fakes.worlds.static_kubelet import state
from support.values.operator import condition, pod_body


@pytest.fixture
def dumped(folder: Path) -> World:
    """A cluster of two nodes, whose NodeAssignments are written already."""
    world = cluster(pod_body("a"), pod_body("b"))
    (folder / "now.json").write_text(world.dump())
    return world


def of_cluster(folder: Path, what: str, *more: str) -> int:
    known = ["--cluster", str(folder / "now.json"), "--kubelet-root-dir", str(folder)]
    return main(["migrate", what, *known, *more])


@pytest.mark.usefixtures("dumped")
def test_a_node_assignment_must_say_the_same_already(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert of_cluster(folder, "--check") == 2
    assert "2 Nodes are given; choose with --node" in capsys.readouterr().err
    (folder / "cpu_manager_state").write_text(state(uid_a={"main": "2-3"}, uid_b={"main": "6-7"}))
    assert of_cluster(folder, "--check", "--node", "node-1") == 1
    shown = capsys.readouterr().out
    assert "default/a main  2-3  keeps them\n" in shown
    assert "default/b main  6-7  keeps them, but its NodeAssignment does not say so yet" in shown
    assert "1 of 2 containers would not keep CPUs now (marked !)" in shown
    (folder / "cpu_manager_state").write_text(state(uid_a={"main": "2-3"}, uid_b={"main": "4-5"}))
    assert of_cluster(folder, "--check", "--node", "node-1") == 0


def test_a_node_on_which_numapin_is_not_installed_yet(
    folder: Path, dumped: World, capsys: pytest.CaptureFixture[str]
) -> None:
    dumped.cluster.assignments.clear()
    (folder / "now.json").write_text(dumped.dump())
    assert of_cluster(folder, "--check", "--node", "node-1") == 2
    assert "the hardware of node node-1 is not known" in capsys.readouterr().err
    machine = ("--machine", str(folder / "machine.json"))
    assert of_cluster(folder, "--check", "--node", "node-1", *machine) == 0
    assert "default/b main  2-3  keeps them\n" in capsys.readouterr().out


def test_a_node_that_is_stalled_by_the_kubelet_alone(folder: Path, dumped: World) -> None:
    body = dumped.cluster.assignments["node-1"]
    body["status"]["conditions"] = [condition("Stalled", reason="KubeletStaticPolicy")]
    (folder / "now.json").write_text(dumped.dump())
    (folder / "cpu_manager_state").write_text(state(uid_a={"main": "2-3"}, uid_b={"main": "4-5"}))
    assert of_cluster(folder, "--check", "--node", "node-1") == 0


@pytest.mark.usefixtures("dumped")
def test_the_state_for_the_way_back_is_what_the_assignment_has_given(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert of_cluster(folder, "--back", "--node", "node-1") == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out) == {
        "policyName": "static",
        "defaultCpuSet": "0-1,6-7",
        "entries": {"uid-a": {"main": "2-3"}, "uid-b": {"main": "4-5"}},
    }
    assert "reserves CPUs among 0-1,6-7" in shown.err
    (folder / "cpu_manager_state").write_text(shown.out)
    assert of_cluster(folder, "--check", "--node", "node-1") == 0


def test_strictly_reserved_cpus_are_in_no_list_on_the_way_back(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    world = cluster(pod_body("a"), spec={"reserved": {"count": 2, "strict": True}})
    (folder / "now.json").write_text(world.dump())
    assert of_cluster(folder, "--back", "--node", "node-1") == 0
    assert json.loads(capsys.readouterr().out)["defaultCpuSet"] == "4-7"


@pytest.mark.usefixtures("dumped")
@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ([], "2 NodeAssignments are given; choose with --node"),
        (["--node", "other"], "there is no NodeAssignment other"),
    ],
)
def test_wrong_input_for_the_way_back(
    folder: Path, more: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert of_cluster(folder, "--back", *more) == 2
    assert problem in capsys.readouterr().err


def test_an_assignment_that_gives_no_cpus_has_no_way_back(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    world = cluster(spec={"mode": "None"})
    (folder / "now.json").write_text(world.dump())
    assert of_cluster(folder, "--back", "--node", "node-1") == 2
    assert "NodeAssignment node-1: it gives no CPUs" in capsys.readouterr().err
