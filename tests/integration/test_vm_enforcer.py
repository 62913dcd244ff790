"""The enforcer's own tests on the kernel of a virtual machine: cgroup v2, NUMA, real containers."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from numapin_lab.controlplane import ControlPlane
from numapin_lab.vm import Machine, VirtualMachine

GUEST_SECONDS = 900
# Each takes an enforcer, whose start alone is many seconds there; these need the kernel most.
CHOSEN = "running_container or swap or fenced"
FOLDER = Path("tests/integration/enforcer")
PYTEST = (sys.executable, "-m", "pytest", "-q", "--color=no", "-p", "no:cacheprovider")
# Some 1.5 s each in the guest: as many as fit in a minute.
MODEL_EXAMPLES = 25

pytestmark = pytest.mark.timeout(GUEST_SECONDS + 60)


def passes(guest: VirtualMachine, *options: str) -> None:
    result = guest.run([*PYTEST, "--basetemp=/run/tests", *options], GUEST_SECONDS)
    assert result.status == 0, result.output
    assert " passed" in result.output
    assert " skipped" not in result.output


@pytest.mark.parametrize(
    ("numa_nodes", "tests"),
    [
        pytest.param(1, (f"{FOLDER}/test_pinning.py", "-k", CHOSEN), id="pinning"),
        pytest.param(2, (f"{FOLDER}/guest_numa.py",), id="memory"),
    ],
)
def test_on_cgroup_v2(
    numa_nodes: int, tests: tuple[str, ...], vm: VirtualMachine, control_plane: ControlPlane
) -> None:
    outside = f"{control_plane.folder} {control_plane.ports.apiserver}"
    guest = replace(
        vm,
        machine=Machine(sockets=2, cores=1, threads=1, numa_nodes=numa_nodes),
        environment={**vm.environment, "CI": "true", "NUMAPIN_TEST_CONTROL_PLANE": outside},
    )
    passes(guest, *tests)


def test_the_kernel_model_answers_as_cgroup_v2_does(vm: VirtualMachine) -> None:
    """Operations, CPU hotplug and whole plans; the host's own kernel is asked by the same tests."""
    variables = {"NUMAPIN_TEST_HOTPLUG": "1", "NUMAPIN_TEST_EXAMPLES": str(MODEL_EXAMPLES)}
    guest = replace(
        vm,
        machine=Machine(sockets=2, cores=2, threads=1, numa_nodes=2),
        environment={**vm.environment, **variables},
    )
    passes(guest, "--noconftest", *map(str, sorted(FOLDER.glob("test_cgroupfs_*.py"))))
