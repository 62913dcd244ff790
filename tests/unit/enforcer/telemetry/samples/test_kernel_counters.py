"""The kernel's counters as files of both cgroup versions."""

from pathlib import Path

import pytest

from numapin_api.cpuset import CpuSet
from numapin_enforcer.cgroups.mounts import Mounts, find_mounts
from numapin_enforcer.cgroups.tree import Version
from numapin_enforcer.telemetry.samples.kernel_counters import KernelCounters

PATH = "kubepods/pod1/c1"


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


@pytest.fixture
def v1(tmp_path: Path) -> KernelCounters:
    write(
        tmp_path,
        {
            "cpuset/cpuset.cpus": "0-1\n",
            f"cpuset/{PATH}/tasks": "7\n0\n9\n",
            "cpuacct/cpuacct.usage_percpu": "5000000000 7000000000 \n",
            f"cpuacct/{PATH}/cpuacct.usage_percpu": "1000000000 6000000000 \n",
            "memory/memory.usage_in_bytes": "0\n",
            f"memory/{PATH}/memory.numa_stat": "hierarchical_total=3 N0=1 N1=2\n",
            "proc/7/schedstat": "123 4500000000 6\n",
        },
    )
    return KernelCounters(find_mounts(tmp_path), tmp_path / "proc")


@pytest.fixture
def v2(tmp_path: Path) -> KernelCounters:
    pressure = "some avg10=0.00 avg60=0.00 avg300=0.00 total=2500000\n"
    write(
        tmp_path,
        {
            "proc/stat": "cpu  9 9 9 9\ncpu0 100 20 30 999 8 7 6 5\ncpu1 1 2 3 4 5 6 7\nintr 5\n",
            f"{PATH}/cpu.stat": "usage_usec 1500000\nuser_usec 1000000\nsystem_usec 500000\n",
            f"{PATH}/cgroup.threads": "7\n",
            f"{PATH}/cpu.pressure": pressure + pressure.replace("some", "full"),
            f"{PATH}/memory.pressure": pressure,
            f"{PATH}/memory.numa_stat": "anon N0=4096 N1=8192\nfile N0=1 N1=0\nslab N0=7 N1=7\n",
        },
    )
    mounts = Mounts(Version.V2, tmp_path, tmp_path, tmp_path)
    return KernelCounters(mounts, tmp_path / "proc")


def test_v1_counts_cpu_time_for_each_cpu(v1: KernelCounters) -> None:
    assert v1.cpu_seconds() == pytest.approx({0: 5.0, 1: 7.0})
    assert v1.cgroup_seconds(PATH, (1,)) == pytest.approx(6.0)


def test_v2_counts_that_of_a_cpu_in_ticks_and_that_of_a_cgroup_as_a_whole(
    v2: KernelCounters,
) -> None:
    assert v2.cpu_seconds() == pytest.approx({0: 1.5, 1: 0.06})
    assert v2.cgroup_seconds(PATH, (1,)) == pytest.approx(1.5)


def test_threads_and_their_delay(v1: KernelCounters, v2: KernelCounters) -> None:
    assert (v1.threads(PATH), v2.threads(PATH)) == ((7, 9), (7,))
    assert v1.thread_times(7) == pytest.approx((1.23e-07, 4.5, 6))
    assert v1.thread_times(9) is None, "it has ended"


def test_pressure_is_only_on_v2(v1: KernelCounters, v2: KernelCounters) -> None:
    assert v1.pressure(PATH) == {}
    assert v2.pressure(PATH) == pytest.approx(
        {("cpu", "some"): 2.5, ("cpu", "full"): 2.5, ("memory", "some"): 2.5}
    )


def test_memory_on_each_numa_node(v1: KernelCounters, v2: KernelCounters) -> None:
    assert v2.numa_bytes(PATH) == {0: 4097, 1: 8192}
    assert v1.numa_bytes(PATH)[1] == 2 * v1.numa_bytes(PATH)[0] > 0


def test_a_container_that_is_gone_has_no_counters(v1: KernelCounters, v2: KernelCounters) -> None:
    for counters in (v1, v2):
        assert counters.cgroup_seconds("kubepods/gone", (0,)) is None
        assert counters.threads("kubepods/gone") == ()
        assert counters.pressure("kubepods/gone") == {}
        assert counters.numa_bytes("kubepods/gone") == {}


def test_a_long_list_of_threads_is_cut_between_two_of_them(
    v2: KernelCounters, tmp_path: Path
) -> None:
    write(tmp_path, {f"{PATH}/cgroup.threads": "".join(f"{n}\n" for n in range(1, 20_000))})
    found = v2.threads(PATH)
    assert found == tuple(range(1, len(found) + 1))
    assert 10_000 < len(found) < 19_999


def test_this_machine_counts_the_run_delay_of_this_thread() -> None:
    mounts = Mounts(Version.V2, Path("/nowhere"), None)
    assert KernelCounters(mounts, Path("/proc")).thread_times(1) is not None


def test_slices_of_cpus_are_the_last_number_of_their_line(
    tmp_path: Path, v2: KernelCounters
) -> None:
    schedstat = (
        "version 15\ntimestamp 4295\n"
        "cpu0 0 0 12 4 7 3 99000 88000 11\n"
        "domain0 00000003 1 2 3\n"
        "cpu3 0 0 0 0 0 0 0 0 7\n"
        "cpu4 1 2 3\n"
    )
    write(tmp_path, {"proc/schedstat": schedstat})
    assert v2.cpu_slices() == {0: 11, 3: 7}


def test_a_kernel_without_schedstats_has_no_slices(v2: KernelCounters) -> None:
    assert v2.cpu_slices() == {}


@pytest.mark.parametrize("name", ["web", "\nse.nr_migrat", ") 9\n9 : 9", "\n\n\n-----\n"])
def test_migrations_whatever_the_thread_calls_itself(
    tmp_path: Path, v2: KernelCounters, name: str
) -> None:
    text = (
        f"{name} (7, #threads: 1)\n-----\n"
        "se.sum_exec_runtime                          :             0.125637\n"
        "se.nr_migrations                             :                   12\n"
        "nr_switches                                  :                   99\n"
    )
    write(tmp_path, {"proc/7/sched": text})
    assert (v2.migrations(7), v2.migrations(8)) == (12, 0)


def test_interrupts_are_those_of_the_named_file(tmp_path: Path) -> None:
    write(tmp_path, {"host": "  CPU0  CPU1\n  5:  7  8  GIC  1 Edge     eth0\n"})
    mounts = Mounts(Version.V2, tmp_path, None)
    counters = KernelCounters(mounts, tmp_path, tmp_path / "host")
    assert [dict(one.came()) for one in counters.interrupts(CpuSet((1,)))] == [{1: 8}]
    assert [*KernelCounters(mounts, tmp_path).interrupts(CpuSet((1,)))] == []


def test_this_machine_counts_migrations_and_interrupts(tmp_path: Path) -> None:
    counters = KernelCounters(Mounts(Version.V2, tmp_path, None), Path("/proc"))
    assert counters.migrations(1) > 0
    assert [*counters.interrupts(CpuSet((0,)))]


def test_this_machine_counts_slices_of_each_cpu_if_its_kernel_has_schedstats(
    tmp_path: Path,
) -> None:
    counters = KernelCounters(Mounts(Version.V2, tmp_path, None), Path("/proc"))
    slices = counters.cpu_slices()
    assert bool(slices) is Path("/proc/schedstat").exists()
    assert all(count > 0 for count in slices.values())
