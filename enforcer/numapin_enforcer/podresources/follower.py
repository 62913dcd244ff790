"""Follows each pass to know which devices the pods have, and says what the status must say."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from numapin_api.schema.plain import DevicesStatus
from numapin_api.topology import Topology
from numapin_daemon.clock import Clock, SystemClock
from numapin_enforcer.pass_values import Pass
from numapin_enforcer.podresources.asking import KubeletDevices
from numapin_enforcer.podresources.devices import Places
from numapin_enforcer.runtime.interface import ContainerRuntime
from numapin_enforcer.status.state import State


class Containers(Protocol):
    """The containers of the kubelet's cgroups."""

    @property
    def pod_uids(self) -> frozenset[str]:
        """UIDs of the pods that have a cgroup."""


@dataclass(eq=False)
class Devices:
    """Asks for the devices of the pods that have a cgroup, while a spec is enforced.

    Attributes:
        containers: those of the node.
        runtime: names pods.
        socket: the kubelet's podresources socket; None to ask nothing.
        wake: set to have a pass made.
    """

    containers: Containers
    runtime: ContainerRuntime
    socket: Path | None
    wake: asyncio.Event
    clock: Clock = field(default_factory=SystemClock)
    kubelet: KubeletDevices = field(init=False)
    _machine: tuple[Topology | None, Places] = field(default=(None, Places()), init=False)

    def __post_init__(self) -> None:
        self.kubelet = KubeletDevices(self.socket, self.runtime, self.wake, self.clock)

    def follow(self, one: Pass) -> None:
        """Name the pods that there are; ask nothing while no assignment is enforced."""
        if one.unreadable is not None:
            return
        if one.looked_for is None or not one.looks or one.result.tree is None:
            self.kubelet.rest()
            return
        if one.topology is not self._machine[0]:
            self._machine = (one.topology, Places.of(one.topology))
        resynced = one.full_resync
        self.kubelet.observe(self.containers.pod_uids, self._machine[1], resynced=resynced)
        if one.body is not None:
            self.kubelet.resume((one.body.get("status") or {}).get("devices") or {})

    def state(self) -> State:
        """What keeps devices from being known, but for what the kubelet itself says."""
        return State(working=self.kubelet.obstacles(), finishes_soon=self.kubelet.is_answering)

    @property
    def status(self) -> DevicesStatus | None:
        """What the status says of them; None while the kubelet is not asked."""
        return self.kubelet.status
