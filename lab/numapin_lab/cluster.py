"""The parts of a lab, and the order in which they start."""

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from numapin_lab.components.build import Say, say
from numapin_lab.controlplane import controllers
from numapin_lab.controlplane.api import ApiServer
from numapin_lab.controlplane.controllers import Controller
from numapin_lab.controlplane.installation import install
from numapin_lab.controlplane.kubectl import Kubectl
from numapin_lab.controlplane.servers import ControlPlane, ControlPlanePorts
from numapin_lab.node import agents
from numapin_lab.node.agents import Agent
from numapin_lab.node.cgroups import LabCgroup
from numapin_lab.node.container_cpus import ContainerCpus, read_containers
from numapin_lab.node.containerd import Runtime
from numapin_lab.node.kubelet import Kubelet, KubeletPorts
from numapin_lab.processes.daemons import Daemon
from numapin_lab.state import LabState
from numapin_lab.vm import systemd_node
from numapin_lab.vm.node import VmNode, continued, guest_enforcer, take_over_authority
from numapin_lab.vm.snapshot import Snapshot, provide_snapshot

Step = tuple[str, Callable[[], None]]


class Cluster:
    """Every part of a lab, built from its state. `programs`: where the components are.

    Its node is this machine; the node of a `VmCluster` is a virtual machine.
    """

    def __init__(self, folder: Path, state: LabState, programs: Mapping[str, Path]) -> None:
        self.folder, self.state, self.programs = folder, state, programs

    @cached_property
    def plane(self) -> ControlPlane:
        """Etcd and kube-apiserver."""
        ports = self.state.ports
        chosen = ControlPlanePorts(ports.etcd, ports.etcd_peer, ports.apiserver)
        return ControlPlane(self.folder, chosen, self.programs)

    @cached_property
    def runtime(self) -> Runtime:
        """Containerd."""
        folder = self.folder / "containerd"
        return Runtime(folder, self.state.run, LabCgroup(self.state.name), self.programs)

    @cached_property
    def kubelet(self) -> Kubelet:
        """The node."""
        ports = KubeletPorts(self.state.ports.kubelet, self.state.ports.kubelet_health)
        folder, state = self.folder / "kubelet", self.state
        return Kubelet(folder, state.node, ports, self.plane, self.runtime, state.kubelet)

    @cached_property
    def controllers(self) -> tuple[Controller, ...]:
        """kube-controller-manager and kube-scheduler."""
        ports = self.state.ports
        return (
            controllers.controller_manager(self.plane, ports.controllers, emulated=self.state.vm),
            controllers.scheduler(self.plane, ports.scheduler),
        )

    @cached_property
    def agents(self) -> tuple[Agent, ...]:
        """Operator and enforcer."""
        ports = self.state.ports
        return (
            agents.operator(self.plane, ports.operator),
            self._enforcer(ports.enforcer),
        )

    @cached_property
    def standby(self) -> Daemon:
        """The standby."""
        return agents.standby(self.kubelet)

    @property
    def kubectl(self) -> Kubectl:
        """The administrator's kubectl."""
        return self.plane.kubectl

    @property
    def api(self) -> ApiServer:
        """The administrator's client."""
        return self.plane.api

    def pods(self) -> list[dict[str, Any]]:
        """Every pod of the cluster, from the API server."""
        return list(self.api.get("/api/v1/pods")["items"])

    def containers(self) -> list[ContainerCpus]:
        """Every container of the node, with its CPUs as the kernel reports them."""
        return read_containers(self.runtime.cgroup, self.pods())

    def up(self, without: AbstractSet[str] = frozenset(), progress: Say = say) -> None:
        """Start every part that does not run; returns when the node and the agents are ready.

        Args:
            without: names of agents that are not started (a running one is left alone); without
                the enforcer the standby is not started either.
            progress: takes one line.

        Raises:
            LabError: a part ended or did not become ready; the message holds the end of its log.
        """
        for step, start in self._steps(without):
            progress(f"lab: {step}")
            start()

    def _enforcer(self, port: int) -> Agent:
        return agents.enforcer(self.kubelet, port)

    def _standby_steps(self) -> tuple[Step, ...]:
        return (("standby", self._stand_by),)

    def _stand_by(self) -> None:
        if self.standby.pid() is None:
            self.standby.start()

    def _node_steps(self) -> tuple[Step, Step, Step]:
        """The steps of the node: before the API server, to join it, and to become ready."""
        return (
            ("containerd and the image", self.runtime.start),
            ("kubelet", self.kubelet.start),
            ("waiting for the node to be Ready", self.kubelet.wait_ready),
        )

    def _steps(self, without: AbstractSet[str]) -> list[Step]:
        chosen = [agent for agent in self.agents if agent.name not in without]
        prepare, join, wait = self._node_steps()
        steps: list[Step] = [
            prepare,
            ("etcd and kube-apiserver", self.plane.start),
            ("custom resources, accounts and roles", lambda: install(self.plane)),
        ]
        steps += [(controller.name, controller.start) for controller in self.controllers]
        steps.append(join)
        steps += [(agent.name, agent.start) for agent in chosen]
        if "enforcer" not in without:
            steps += self._standby_steps()
        steps.append(wait)
        steps += [(f"waiting for the {agent.name}", agent.wait_ready) for agent in chosen]
        return steps


class VmCluster(Cluster):
    """A lab whose node runs in a virtual machine."""

    @cached_property
    def snapshot(self) -> Snapshot:
        """The snapshot from which the node continues; created if there is none."""
        return provide_snapshot(self.programs, systemd=self.state.systemd)

    @cached_property
    def vm(self) -> VmNode:
        """The node."""
        state = self.state
        node = continued(self.snapshot, self.plane, state.run, state.ports.enforcer)
        driver = systemd_node.DRIVER if state.systemd else {}
        return replace(node, settings={**driver, **state.kubelet})

    def _enforcer(self, port: int) -> Agent:
        return guest_enforcer(self.vm, port)

    def _standby_steps(self) -> tuple[Step, ...]:
        """No standby: tests show that cpusets stay as they are without any process."""
        return ()

    def _node_steps(self) -> tuple[Step, Step, Step]:
        return (
            ("the virtual machine", self._load),
            ("the kubelet in the virtual machine", self.vm.join),
            ("waiting for the node to be Ready", self.vm.wait_ready),
        )

    def _load(self) -> None:
        take_over_authority(self.snapshot, self.plane)
        self.vm.load()
