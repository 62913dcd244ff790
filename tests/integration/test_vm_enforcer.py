"""The enforcer's own tests on the kernel of a virtual machine: cgroup v2, NUMA, real containers."""

import sys
from dataclasses import replace

import pytest

from numapin_lab.controlplane import ControlPlane
from numapin_lab.vm import Machine, VirtualMachine

GUEST_SECONDS = 900
# Each takes an enforcer, whose start alone is many seconds there; these need the kernel most.
CHOSEN = "running_container or swap or fenced"
FOLDER = "tests/integration/enforcer"


@pytest.mark.timeout(GUEST_SECONDS + 60)
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
    options = ["-q", "--color=no", "-p", "no:cacheprovider", "--basetemp=/run/tests"]
    result = guest.run([sys.executable, "-m", "pytest", *options, *tests], GUEST_SECONDS)
    assert result.status == 0, result.output
    assert " passed" in result.output
