"""Where the cgroup file systems of a machine are mounted."""

from pathlib import Path

import pytest

from numapin_lab.node.cgroups import hierarchies

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
