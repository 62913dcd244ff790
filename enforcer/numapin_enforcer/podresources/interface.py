"""What the enforcer needs of the kubelet's podresources API: the protocol and its error."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Protocol

from numapin_enforcer.podresources.devices import Devices, Places
from numapin_enforcer.podresources.pod_rows import PodAnswer


class PodResourcesError(Exception):
    """The kubelet does not say which devices there are."""

    def __init__(self, socket: Path, problem: str) -> None:
        super().__init__(f"the kubelet does not list devices on {socket}: {problem}")
        self.socket, self.problem = socket, problem


class PodResources(Protocol):
    """A connection to a kubelet, as the enforcer uses it."""

    async def devices(self, places: Places) -> tuple[Devices, ...]:
        """The healthy devices of the node, used or not."""
        ...

    async def pods(self, places: Places) -> PodAnswer:
        """The devices of the pods that the kubelet runs."""
        ...


Connect = Callable[[Path], AbstractAsyncContextManager[PodResources]]
"""Connects to the socket for some calls."""
