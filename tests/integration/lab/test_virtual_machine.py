"""The virtual machine that shows NUMA nodes and cgroup v2 to what runs in it."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from numapin_lab.errors import LabError
from numapin_lab.vm.machine import Machine, VirtualMachine

LOOK = """
import json, os, pathlib
read = lambda path: pathlib.Path(path).read_text().strip()
pathlib.Path("/var/tmp/trace-of-the-guest").write_text("x")
print(json.dumps({
    "numa": [read(f"/sys/devices/system/node/node{n}/cpulist") for n in (0, 1)],
    "distance": read("/sys/devices/system/node/node0/distance"),
    "siblings": read("/sys/devices/system/cpu/cpu2/topology/thread_siblings_list"),
    "isolated": read("/sys/devices/system/cpu/isolated"),
    "controllers": read("/sys/fs/cgroup/cgroup.subtree_control").split(),
    "folder": os.getcwd(),
    "user": os.getuid(),
}))
raise SystemExit(7)
"""


def test_a_command_sees_the_machine_it_asked_for(vm: VirtualMachine) -> None:
    machine = VirtualMachine(Machine(append="isolcpus=3,7"), vm.environment)
    result = machine.run([sys.executable, "-c", LOOK])
    assert result.status == 7, result.output
    seen = json.loads(result.output)
    assert {"cpuset", "cpu", "memory", "hugetlb"} <= set(seen.pop("controllers"))
    assert seen == {
        "numa": ["0-3", "4-7"],
        "distance": "10 21",
        "siblings": "2-3",
        "isolated": "3,7",
        "folder": str(Path.cwd()),
        "user": 0,
    }
    assert not Path("/var/tmp/trace-of-the-guest").exists()


def test_systemd_can_be_the_first_process(vm: VirtualMachine) -> None:
    """What is set of a unit over its bus is in the cgroup, and a command's status comes back."""
    command = """
    tr '\\0' ' ' </proc/1/cmdline; test -S /run/dbus/system_bus_socket || exit 1
    systemctl set-property --runtime system.slice AllowedCPUs=1-2 || exit 2
    cat /sys/fs/cgroup/system.slice/cpuset.cpus.effective /proc/self/cgroup; exit 7
    """
    result = replace(vm, systemd=True).run(["sh", "-c", command])
    assert result.status == 7, result.output
    assert result.output.startswith("/lib/systemd/systemd ")
    assert result.output.endswith("1-2\n0::/system.slice/numapin-command.service\n")


def test_a_guest_that_hangs_is_ended(vm: VirtualMachine) -> None:
    with pytest.raises(LabError, match="did not finish within 1 s"):
        vm.run(["sleep", "600"], timeout_seconds=1)
