"""Bring a lab up and down, and ask for its status; everything it has is in one folder."""

import os
import shutil
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numapin_lab.cleanup import clear
from numapin_lab.cluster import Cluster, VmCluster
from numapin_lab.components.build import Say, provide, say
from numapin_lab.components.catalog import CLUSTER
from numapin_lab.errors import LabError
from numapin_lab.installed.cluster import InstalledCluster
from numapin_lab.installed.vm_cluster import InstalledVmCluster
from numapin_lab.node.cgroups import LabCgroup
from numapin_lab.processes.daemons import read_pid, stop
from numapin_lab.processes.locks import locked
from numapin_lab.state import LabState
from numapin_lab.vm.node_machine import NodeMachine

PARTS = (
    "etcd",
    "kube-apiserver",
    "containerd",
    "kube-controller-manager",
    "kube-scheduler",
    "kubelet",
    "operator",
    "enforcer",
    "standby",
)
# The parts on this machine when the node is a virtual machine.
VM_PARTS = (
    "vm",
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "operator",
)
# The parts on this machine when numapin runs as pods.
POD_PARTS = (
    "containerd",
    "etcd",
    "kube-apiserver",
    "relay",
    "node-relay",
    "kube-controller-manager",
    "kube-scheduler",
    "kubelet",
)
AGENT_STOP_SECONDS = 10.0


@dataclass(frozen=True)
class PartStatus:
    """One process of the lab; `pid` is None if it does not run."""

    name: str
    pid: int | None
    log: Path


@dataclass(frozen=True)
class LabFolder:
    """The folder of a lab. `path` is absolute, because daemons have other working folders.

    `vm`: the node of a new lab is a virtual machine, not this machine. `pods`: a new lab runs
    numapin as pods, from its manifests, and not as processes from source. `systemd`: that is
    process 1 of a new virtual machine and the cgroup driver of its kubelet.
    """

    path: Path
    vm: bool = False
    pods: bool = False
    systemd: bool = False

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.path / "kubeconfig"

    def state(self) -> LabState | None:
        """The state of the lab; None when it is down."""
        return LabState.read(self.path / "lab.json")

    def up(
        self,
        without: AbstractSet[str] = frozenset(),
        environment: Mapping[str, str] = os.environ,
        progress: Say = say,
        kubelet: Mapping[str, Any] | None = None,
    ) -> Cluster:
        """Start every part that does not run; build the components that are missing.

        The state is written before anything starts, so that `down` can end an interrupted `up`.

        Args:
            without: names of agents that are not started.
            environment: says where components are searched and cached.
            progress: takes one line.
            kubelet: fields of KubeletConfiguration; they stay until the lab is taken down.

        Raises:
            LabError: the lab cannot be brought up; the message says why.
        """
        known = self.state()
        if known and kubelet is not None and kubelet != known.kubelet:
            raise LabError(f"the kubelet of {self.path} has other settings; take the lab down")
        if self.systemd and not (self.vm or (known and known.vm)):
            raise LabError("--systemd needs --vm: only a virtual machine has a systemd of its own")
        if known and self.vm and not known.vm:
            raise LabError(f"the node of {self.path} is this machine; take the lab down")
        if known and self.systemd and not known.systemd:
            raise LabError(f"the node of {self.path} has no systemd; take the lab down")
        if known and self.pods != known.pods:
            runs = "as pods" if known.pods else "from source"
            raise LabError(f"numapin runs {runs} in {self.path}; take the lab down")
        programs = {
            name: found.path for name, found in provide(CLUSTER, environment, progress).items()
        }
        self.path.mkdir(parents=True, exist_ok=True)
        with locked(self.path / "lock"):
            state = self.state()
            if state is None:
                state = LabState.new(kubelet or {}, self.vm, self.pods, self.systemd)
                state.write(self.path / "lab.json")
            cluster = _kind(state)(self.path, state, programs)
            cluster.up(without, progress)
        return cluster

    def down(self) -> None:
        """End and remove everything except the logs; does nothing when the lab is down.

        Raises:
            LabError: something cannot be removed; the message names it.
        """
        if not self.path.is_dir():
            return
        with locked(self.path / "lock"):
            state = self.state()
            if state is None:
                return
            for name in ("standby", "enforcer", "operator"):
                pid = read_pid(self.path / name)
                if pid is not None:
                    stop(pid, AGENT_STOP_SECONDS)
            clear(self.path, state.run, LabCgroup(state.name))
            self._remove_data()

    def guest(self) -> NodeMachine:
        """The virtual machine, to run commands in it.

        Raises:
            LabError: it is not running.
        """
        state = self.state()
        if state is None or not state.vm or read_pid(self.path / "vm") is None:
            raise LabError(f"no virtual machine runs in {self.path}: up --vm starts one")
        return NodeMachine(self.path / "vm", state.run, ())

    def status(self) -> list[PartStatus]:
        """Every part on this machine, in the order in which they start."""
        state = self.state()
        vm, pods = (state.vm, state.pods) if state else (self.vm, self.pods)
        names = VM_PARTS if vm else POD_PARTS if pods else PARTS
        return [
            PartStatus(name, read_pid(self.path / name), self.path / name / "log") for name in names
        ]

    def _remove_data(self) -> None:
        """Remove all but the logs; the state last, so that a failed `down` can be repeated."""
        logs = {part.log for part in self.status()}
        for folder in self.path.iterdir():
            if folder.is_dir():
                for entry in folder.iterdir():
                    if entry.is_dir() and not entry.is_symlink():
                        shutil.rmtree(entry)
                    elif entry not in logs:
                        entry.unlink()
        self.kubeconfig.unlink(missing_ok=True)
        (self.path / "lab.json").unlink()


def _kind(state: LabState) -> type[Cluster]:
    if state.pods:
        return InstalledVmCluster if state.vm else InstalledCluster
    return VmCluster if state.vm else Cluster
