"""The enforcer's own tests on the kernel of a virtual machine: cgroup v2, NUMA, real containers."""

import socket
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from numapin_lab.controlplane.servers import ControlPlane
from numapin_lab.vm.kernel import VARIABLE
from numapin_lab.vm.machine import Machine, NumaNode, VirtualMachine
from support.real.cgroups import EXAMPLES, examples
from support.suite.left_out import before_release

GUEST_SECONDS = 1800
# Each takes an enforcer, whose start alone is many seconds there; these need the kernel most.
CHOSEN = "running_container or swap or fenced or never_run_on_exclusive_cpus or memory"
ENFORCER = Path("tests/integration/enforcer")
FOLDER, CGROUPS = ENFORCER / "virtual_machine", ENFORCER / "cgroups"
# The host ends the guest; a bound inside, made for a real machine, would only come before that.
PYTEST = (
    sys.executable,
    "-m",
    "pytest",
    "-q",
    "--color=no",
    "-p",
    "no:cacheprovider",
    "--timeout=0",
)
# Some 1.5 s each in the guest. `NUMAPIN_TEST_EXAMPLES=500 pytest ...` tries more.
MODEL_EXAMPLES = 12

pytestmark = pytest.mark.timeout(GUEST_SECONDS + 60)


def passes(guest: VirtualMachine, *options: str) -> None:
    result = guest.run([*PYTEST, "--basetemp=/run/tests", *options], GUEST_SECONDS)
    assert result.status == 0, result.output
    assert " passed" in result.output
    assert " skipped" not in result.output


@pytest.fixture
def guest(vm: VirtualMachine, control_plane: ControlPlane) -> VirtualMachine:
    """Two CPUs, each in a NUMA node of its own; its API server is outside."""
    outside = f"{control_plane.folder} {control_plane.ports.apiserver}"
    return replace(
        vm,
        machine=Machine(sockets=2, cores=1, threads=1, numa_nodes=2),
        environment={**vm.environment, "CI": "true", "NUMAPIN_TEST_CONTROL_PLANE": outside},
    )


@before_release
def test_containers_on_cgroup_v2_and_memory_on_two_numa_nodes(guest: VirtualMachine) -> None:
    """In one machine: a boot and pytest's start there take half a minute.

    tests/e2e/test_vmnode.py shows nearly the same with a real kubelet, and the plans below a swap.
    """
    files = (ENFORCER / "test_pinning.py", ENFORCER / "test_standby.py", FOLDER / "guest_numa.py")
    passes(guest, *map(str, files), "-k", CHOSEN)


@before_release
def test_what_containers_of_the_start_gate_take_first(guest: VirtualMachine) -> None:
    """It takes minutes; the gate itself is tried outside. 80 huge pages on each NUMA node."""
    machine = replace(guest.machine, append="hugepages=160")
    passes(replace(guest, machine=machine), f"{FOLDER}/guest_start_gate.py")


@before_release
@pytest.mark.parametrize("kernel", ["backports", "sid"])
def test_partitions_of_containers(
    guest: VirtualMachine, monkeypatch: pytest.MonkeyPatch, kernel: str
) -> None:
    """Kernels differ in what they say of a partition, and 6.1 makes none like these."""
    monkeypatch.setenv(VARIABLE, kernel)
    machine = Machine(sockets=2, cores=2, threads=1, numa_nodes=2)
    passes(replace(guest, machine=machine), f"{FOLDER}/guest_partitions.py")


def test_numa_nodes_without_memory_and_without_cpus(vm: VirtualMachine) -> None:
    layout = (NumaNode((0, 1), 1024), NumaNode(None, 1024), NumaNode((2, 3), 0))
    machine = Machine(sockets=2, cores=2, threads=1, layout=layout)
    passes(replace(vm, machine=machine), f"{FOLDER}/guest_odd_numa.py", "--noconftest")


@before_release
def test_real_time_threads_of_a_pod(vm: VirtualMachine) -> None:
    machine = Machine(sockets=2, cores=2, threads=1)
    passes(replace(vm, machine=machine), f"{FOLDER}/guest_realtime.py", "--noconftest")


@before_release
def test_cgroups_that_systemd_makes(guest: VirtualMachine) -> None:
    passes(replace(guest, systemd=True), f"{FOLDER}/guest_systemd.py")


@before_release
def test_processes_of_no_pod_under_systemd(vm: VirtualMachine) -> None:
    machine = Machine(sockets=2, cores=2, threads=1)
    guest = replace(vm, machine=machine, systemd=True)
    passes(guest, f"{FOLDER}/guest_host_processes.py", "--noconftest")


def test_processes_of_no_pod_without_systemd(vm: VirtualMachine) -> None:
    machine = Machine(sockets=2, cores=2, threads=1)
    passes(replace(vm, machine=machine), f"{FOLDER}/guest_host_without_systemd.py", "--noconftest")


def test_the_kernel_model_answers_as_cgroup_v2_does(vm: VirtualMachine) -> None:
    """Operations, CPU hotplug and whole plans; the host's own kernel is asked by the same tests."""
    variables = {"NUMAPIN_TEST_HOTPLUG": "1", EXAMPLES: str(examples(MODEL_EXAMPLES))}
    guest = replace(
        vm,
        machine=Machine(sockets=2, cores=2, threads=1, numa_nodes=2),
        environment={**vm.environment, **variables},
    )
    names = ("guest_lost_cpu.py", "guest_memory_files.py", "guest_memory_hotplug.py")
    files = [FOLDER / name for name in names]
    files += sorted(CGROUPS.glob("test_cgroupfs_*.py"))
    passes(guest, "--noconftest", *map(str, files))


def test_cgroup_v1_on_two_numa_nodes(vm: VirtualMachine) -> None:
    machine = Machine(sockets=2, cores=2, threads=1, numa_nodes=2)
    passes(replace(vm, machine=machine), f"{FOLDER}/guest_cgroup_v1.py", "--noconftest")


def test_interrupts_under_load_and_of_devices_that_are_plugged_in(vm: VirtualMachine) -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]
    guest = replace(
        vm,
        machine=Machine(sockets=2, cores=2, threads=1, numa_nodes=2),
        environment={**vm.environment, "NUMAPIN_TEST_MONITOR": str(port)},
        options=("-qmp", f"tcp:127.0.0.1:{port},server=on,wait=off"),
    )
    passes(guest, f"{FOLDER}/guest_interrupts.py", "--noconftest", "-s")
