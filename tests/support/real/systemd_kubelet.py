"""Plays a kubelet whose cgroup driver is systemd: its slices are units of a real systemd."""

import subprocess
from pathlib import Path

from numapin_enforcer.cgroups.naming import CgroupNaming, Driver, Qos
from numapin_lab.node.played_kubelet import Kubelet
from numapin_lab.processes.daemons import wait_until

CGROUPS = Path("/sys/fs/cgroup")
CLASSES = {"": Qos.GUARANTEED, "burstable": Qos.BURSTABLE, "besteffort": Qos.BEST_EFFORT}
NAMING = CgroupNaming(Driver.SYSTEMD)
START_SECONDS = 240
# Source: opencontainers/cgroups systemd/v2.go, `Apply`.
ACCOUNTING = ("CPUAccounting", "IOAccounting", "MemoryAccounting", "TasksAccounting")


class SystemdKubelet(Kubelet):
    """Its pods are in `/kubepods.slice`."""

    @property
    def kubepods(self) -> str:
        return NAMING.root

    @property
    def classes(self) -> tuple[str, ...]:
        return tuple(NAMING.qos_path(qos) for qos in (Qos.BURSTABLE, Qos.BEST_EFFORT))

    def pod_cgroup(self, qos: str, uid: str) -> str:
        return NAMING.pod_path(CLASSES[qos], uid)

    def make(self, cgroup: str) -> None:
        """Have systemd start a slice, and give its parents' children every controller."""
        above, _, unit = cgroup.rpartition("/")
        wants = above.rpartition("/")[2] or "-.slice"
        properties = [("DefaultDependencies", "b", "false"), ("Wants", "as", "1", wants)]
        properties += [(name, "b", "true") for name in ACCOUNTING]
        words = [word for one in properties for word in one]
        count = str(len(properties))
        manager("StartTransientUnit", "ssa(sv)a(sa(sv))", unit, "replace", count, *words, "0")
        wait_until((CGROUPS / cgroup).is_dir, f"{unit} to be started", START_SECONDS)
        folder = CGROUPS
        for part in ("", *cgroup.split("/")[:-1]):
            folder = folder / part
            offered = (folder / "cgroup.controllers").read_text().split()
            wanted = " ".join(f"+{controller}" for controller in offered)
            (folder / "cgroup.subtree_control").write_text(wanted)

    def unmake(self, cgroup: str) -> None:
        manager("StopUnit", "ss", cgroup.rpartition("/")[2], "replace")


def manager(method: str, signature: str, *words: str) -> str:
    """Call systemd's manager over the system's bus."""
    name, path = "org.freedesktop.systemd1", "/org/freedesktop/systemd1"
    # Everything after `--` is a word of the call, also what begins with a dash.
    return run("busctl", "call", "--", name, path, f"{name}.Manager", method, signature, *words)


def set_property(unit: str, assignment: str) -> None:
    """Change a property of a unit until the machine is started again."""
    run("systemctl", "set-property", "--runtime", unit, assignment)


def remembered(unit: str) -> str:
    """The CPUs that systemd remembers of a unit; empty is no restriction."""
    return run("systemctl", "show", "--value", "--property=AllowedCPUs", unit).strip()


def run(*command: str) -> str:
    answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert answer.returncode == 0, f"{command}: {answer.stderr}"
    return answer.stdout
