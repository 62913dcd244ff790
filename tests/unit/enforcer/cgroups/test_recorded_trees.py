"""Cgroup paths that real container runtimes created, and how they are parsed."""

from pathlib import Path

import pytest

from numapin_enforcer.cgroups.kubepods.finder import find_naming
from numapin_enforcer.cgroups.mounts import Mounts
from numapin_enforcer.cgroups.naming import Kind, Qos
from numapin_enforcer.cgroups.tree import Version

TREES = sorted((Path(__file__).parents[3] / "cgroups").glob("*.txt"))
KINDS = {
    "root": Kind.ROOT,
    "class": Kind.QOS,
    "pod": Kind.POD,
    "sandbox": Kind.CONTAINER,
    "container": Kind.CONTAINER,
    "nested": Kind.NESTED,
    "conmon": Kind.OTHER,
}
FILES = ("cpuset.cpus", "cpuset.mems", "cpuset.cpus.effective", "cpuset.mems.effective")


@pytest.mark.parametrize("recorded", TREES, ids=lambda path: path.stem)
def test_the_kind_of_every_cgroup_of_a_real_node_is_parsed(recorded: Path, tmp_path: Path) -> None:
    lines = [line.split() for line in recorded.read_text().splitlines() if line[0] != "#"]
    for _, path in lines:
        (tmp_path / path).mkdir(parents=True)
        for name in FILES:
            (tmp_path / path / name).write_text("0\n")
    naming = find_naming(Mounts(Version.V2, tmp_path, tmp_path))
    assert naming.driver in recorded.stem.split("-")
    assert {path: naming.parse(path).kind for _, path in lines} == {
        path: KINDS[what] for what, path in lines
    }
    for what, path in lines:
        parsed = naming.parse(path)
        assert parsed.qos is (Qos.BEST_EFFORT if "besteffort" in path else _class(what, path))
        assert parsed.container_id in path
        assert bool(parsed.container_id) == (what in {"sandbox", "container", "nested"})
        assert bool(parsed.pod_uid) == (what not in {"root", "class"})


def _class(what: str, path: str) -> Qos:
    return Qos.BURSTABLE if what == "class" and "burstable" in path else Qos.GUARANTEED


def test_there_are_recorded_trees() -> None:
    assert {path.stem for path in TREES} >= {
        "crio-1.34.0-cgroupfs-v1",
        "crio-1.34.0-cgroupfs-v2",
        "crio-1.34.0-crun-systemd-v2",
        "crio-1.34.0-systemd-v2",
    }
