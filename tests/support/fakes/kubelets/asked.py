"""A kubelet that is asked for devices, its runtime, and the pods that have a cgroup."""

import asyncio
from pathlib import Path

from numapin_api.schema.plain import DeviceCount, DevicesStatus
from numapin_enforcer.podresources.asking import KubeletDevices
from numapin_enforcer.podresources.devices import Places
from support.fakes.kubelets.podresources import FakeKubelet
from support.fakes.manual_clock import ManualClock
from support.fakes.runtime import FakeRuntime

GPU = "example.com/gpu"
PLACES = Places(frozenset({0, 1}))
GPUS = [(GPU, "g0", (0,)), (GPU, "g1", (1,))]
ALL, LIST = "GetAllocatableResources", "List"


class World:
    """A kubelet that is asked, its runtime, and the pods that have a cgroup."""

    def __init__(self, folder: Path, runtime: FakeRuntime, wake: asyncio.Event) -> None:
        self.clock, self.runtime, self.wake = ManualClock(), runtime, wake
        self.kubelet = FakeKubelet(clock=self.clock)
        self.socket = folder / "kubelet.sock"
        self.socket.touch()
        self.asker = self.another()
        self.pods: set[str] = set()

    def another(self) -> KubeletDevices:
        return KubeletDevices(
            self.socket, self.runtime, self.wake, self.clock, self.kubelet.connect
        )

    async def make_pass(self, *, resynced: bool = False) -> None:
        self.asker.observe(self.pods, PLACES, resynced=resynced)
        await self.clock.run_tasks()

    async def run_pod(
        self, uid: str, name: str, *devices: tuple[str, str, tuple[int, ...]]
    ) -> None:
        """Admit a pod, and make its cgroup; it has no sandbox yet."""
        self.kubelet.has(f"d/{name}", c=list(devices))
        self.pods.add(uid)
        await self.make_pass()

    def name(self, uid: str, name: str) -> None:
        self.runtime.pod_names[uid] = f"d/{name}"

    def holds_report(self) -> bool:
        return self.asker.is_answering

    def status(self) -> DevicesStatus | None:
        return self.asker.status

    @property
    def rows(self) -> dict[str, tuple[str, ...]]:
        """The ids of the devices of each pod that is reported."""
        assert self.asker.status is not None
        return {one.pod_uid: one.ids for one in self.asker.status.containers}

    @property
    def message(self) -> str | None:
        assert self.asker.status is not None
        return self.asker.status.message

    def pop_asked(self) -> list[str]:
        asked = list(self.kubelet.asked)
        self.kubelet.asked.clear()
        return asked


def resources(world: World) -> tuple[DeviceCount, ...]:
    found = world.status()
    assert found is not None
    return found.resources
