"""What the lab reads of the machine, and what it asks of it."""

import re
from pathlib import Path

import pytest

from numapin_lab import requirements
from numapin_lab.errors import LabError, MissingError
from numapin_lab.node.cgroups import hierarchies
from numapin_lab.node.image import find_busybox, is_static
from numapin_lab.node.mounts import below, file_system
from numapin_lab.processes.ports import choose

V1 = """\
tmpfs /sys/fs/cgroup tmpfs rw 0 0
cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,cpu,cpuacct 0 0
cgroup /elsewhere/cpu cgroup rw,cpu,cpuacct 0 0
cgroup /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0
cgroup /sys/fs/cgroup/systemd cgroup rw,name=systemd 0 0
cgroup2 /sys/fs/cgroup/unified cgroup2 rw,nsdelegate 0 0
"""
V2 = """\
proc /proc proc rw 0 0
cgroup2 /sys/fs/cgroup cgroup2 rw,nsdelegate 0 0
cgroup2 /also/here cgroup2 rw,nsdelegate 0 0
"""
MOUNTED = """\
/dev/vda / ext4 rw 0 0
overlay /home overlay rw 0 0
tmpfs /lab/a tmpfs rw 0 0
overlay /lab/a/rootfs overlay rw 0 0
nsfs /run/lab/mnt nsfs rw 0 0
tmpfs /lab/with\\040blank tmpfs rw 0 0
tmpfs /laboratory tmpfs rw 0 0
"""


@pytest.mark.parametrize(
    ("mounts", "expected"),
    [
        pytest.param(V1, ["cpu,cpuacct", "cpuset", "systemd", "unified"], id="v1-and-hybrid"),
        pytest.param(V2, [""], id="v2"),
        pytest.param("proc /proc proc rw 0 0\n", [], id="none"),
    ],
)
def test_each_cgroup_hierarchy_is_found_once(mounts: str, expected: list[str]) -> None:
    assert hierarchies(mounts) == [Path("/sys/fs/cgroup") / name for name in expected]


def test_mounts_below_come_in_the_order_of_unmounting() -> None:
    found = below(MOUNTED, (Path("/lab"), Path("/run/lab")))
    assert found == ["/lab/with blank", "/run/lab/mnt", "/lab/a/rootfs", "/lab/a"]


@pytest.mark.parametrize(
    ("folder", "expected"),
    [("/home/me/.lab", "overlay"), ("/homework", "ext4"), ("/lab/a/b", "tmpfs")],
)
def test_the_file_system_of_a_folder(folder: str, expected: str) -> None:
    assert file_system(MOUNTED, Path(folder)) == expected


def test_ports_differ_and_taken_ones_are_passed_over() -> None:
    ports = choose(500, free=lambda port: port % 2 == 0)
    assert len(set(ports)) == 500
    assert all(20000 <= port < 32000 and port % 2 == 0 for port in ports)


def test_too_few_free_ports_are_told() -> None:
    with pytest.raises(OSError, match="fewer than 2 free TCP ports"):
        choose(2, free=lambda port: port == 20000)


def elf(*kinds: int) -> bytes:
    """A 64-bit ELF header with one program header of each kind."""
    header = bytearray(64)
    header[:5] = b"\x7fELF\x02"
    header[32:40] = (64).to_bytes(8, "little")
    header[54:56] = (56).to_bytes(2, "little")
    header[56:58] = len(kinds).to_bytes(2, "little")
    return bytes(header) + b"".join(kind.to_bytes(4, "little") + bytes(52) for kind in kinds)


@pytest.mark.parametrize(
    ("program", "static"),
    [
        pytest.param(elf(1, 2), True, id="static"),
        pytest.param(elf(6, 3, 1), False, id="asks-for-an-interpreter"),
        pytest.param(b"#!/bin/sh\n", False, id="script"),
        pytest.param(b"", False, id="empty"),
    ],
)
def test_only_a_static_busybox_will_do(program: bytes, static: bool, tmp_path: Path) -> None:
    assert is_static(program) is static
    path = tmp_path / "busybox"
    path.write_bytes(program)
    path.chmod(0o755)
    if static:
        assert find_busybox(str(tmp_path)) == path
    else:
        with pytest.raises(MissingError, match=r"apt-get install .* busybox-static"):
            find_busybox(str(tmp_path))


def test_a_user_is_told_the_command_with_sudo() -> None:
    with pytest.raises(MissingError, match=r"needs root(.|\n)*sudo .* python -m numapin_lab up"):
        requirements.check_root("python -m numapin_lab up", user=1000)


def test_everything_missing_is_told_at_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def missing(*_: object) -> None:
        raise MissingError("containerd needs runc", "apt-get install runc")

    monkeypatch.setattr(requirements, "find_runc", missing)
    monkeypatch.setattr(requirements, "MOUNTS", tmp_path / "mounts")
    (tmp_path / "mounts").write_text("")
    environment = {"PATH": str(tmp_path), "NUMAPIN_LAB_CACHE": str(tmp_path)}
    with pytest.raises(LabError) as refused:
        requirements.check("up", environment)
    for needed in (
        "no cgroup hierarchy has the cpuset controller",
        "containerd needs runc\n  mend it with: apt-get install runc",
        "must be built, and there is no Go",
    ):
        assert re.search(re.escape(needed), str(refused.value))
