"""The enforcer's own tests on the kernel of a virtual machine: cgroup v2, real containers."""

import sys
from dataclasses import replace

import pytest

from numapin_lab.controlplane import ControlPlane
from numapin_lab.vm import Machine, VirtualMachine

# As many CPUs as those tests are written for.
TWO_CPUS = Machine(sockets=2, cores=1, threads=1, numa_nodes=1)
GUEST_SECONDS = 900
# Each takes an enforcer, whose start alone is many seconds there; these need the kernel most.
CHOSEN = "running_container or swap or fenced"


@pytest.mark.timeout(GUEST_SECONDS + 60)
def test_pins_hold_on_cgroup_v2(vm: VirtualMachine, control_plane: ControlPlane) -> None:
    outside = f"{control_plane.folder} {control_plane.ports.apiserver}"
    guest = replace(
        vm,
        machine=TWO_CPUS,
        environment={**vm.environment, "CI": "true", "NUMAPIN_TEST_CONTROL_PLANE": outside},
    )
    tests = ["tests/integration/enforcer/test_pinning.py", "-k", CHOSEN]
    options = ["-q", "--color=no", "-p", "no:cacheprovider", "--basetemp=/run/tests"]
    result = guest.run([sys.executable, "-m", "pytest", *options, *tests], GUEST_SECONDS)
    assert result.status == 0, result.output
    assert " passed" in result.output
