"""What is read of a virtual node's kernel."""

from numapin_lab.vm.running_lab import Group, Task, parse_look, parse_pages

LOOKED = """\
./cpuset.cpus:0-7
./cpuset.cpus.effective:0-7
./cpuset.mems:
./pod1/a/cpuset.cpus:2-3
./pod1/a/cpuset.cpus.effective:2
./pod1/a/cpuset.mems:1
./pod1/a/cpuset.mems.effective:1
./pod1/a/cgroup.procs:12
./pod1/a/cgroup.procs:13
grep: what ended meanwhile
/proc/12/status:Cpus_allowed_list:\t2
/proc/12/status:Mems_allowed_list:\t1
/proc/1/status:Cpus_allowed_list:\t0-7
/proc/1/status:Mems_allowed_list:\t0-1
"""
NUMA_MAPS = """\
00400000 default file=/bin/busybox mapped=200 N0=200 kernelpagesize_kB=4
7f0000000000 default anon=70 dirty=70 N0=4 N1=66 kernelpagesize_kB=4
7f1000000000 default stack anon=2 dirty=2 N1=2 kernelpagesize_kB=4
"""


def test_only_processes_in_cgroups_of_pods_are_read() -> None:
    state = parse_look(LOOKED)
    assert state.groups == {
        ".": Group("0-7", "0-7"),
        "pod1/a": Group("2-3", "2", "1", "1", (12, 13)),
    }
    assert state.tasks == {12: Task("2", "1")}
    assert state.of("a") == (state.groups["pod1/a"], [Task("2", "1")])
    assert list(state.without("pod1")) == ["."]


def test_only_anonymous_memory_counts() -> None:
    assert parse_pages(NUMA_MAPS) == {0: 4, 1: 68}
