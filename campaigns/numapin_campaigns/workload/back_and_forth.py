"""Move a container back and forth between two NUMA nodes, while a workload follows its CPUs.

Each move is that of a policy whose reserved CPUs are edited: the container is outdated then, and
mode Dynamic moves it to the other NUMA node, with its memory. The node is a virtual machine.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from numapin_api.nodeassignment import ContainerAssignment
from numapin_campaigns.workload.following import Follower
from numapin_campaigns.workload.notice import Followed, with_cpus_file
from numapin_lab.running_lab import pod, policy
from numapin_lab.vm.running_lab import RunningVmLab

NAME: Final = "told"
NEIGHBOUR: Final = "neighbour"
NUMA_NODES: Final = ("0-3", "4-7")
"""The CPUs of each; all of one are reserved, so a container has to go to the other."""


@dataclass(frozen=True)
class BackAndForth:
    """A container on a virtual node, and how long it is told before its CPUs leave."""

    lab: RunningVmLab
    notice: str

    @contextmanager
    def followed(self) -> Iterator[None]:
        """Meanwhile a pod runs on NUMA node 1, and a workload in its container follows its CPUs."""
        lab = self.lab
        lab.apply(self.policy(0))
        lab.wait_in_force()
        lab.apply(with_cpus_file(pod(NAME, cpu="1", memory="64Mi")), pod(NEIGHBOUR))
        lab.wait_running(NAME, NEIGHBOUR)
        lab.wait(lambda: self._rests_on(1), "the container to have its CPU")
        follower = self._follower
        follower.start()
        try:
            yield
        finally:
            follower.stop()

    def policy(self, reserved: int) -> dict[str, Any]:
        """The policy that reserves all CPUs of this NUMA node."""
        dynamic = {"movePause": "0s", "maxMovesPerMinute": 60, "moveMemory": True}
        return policy(
            mode="Dynamic",
            dynamic={**dynamic, "notice": self.notice},
            reserved={"cpus": NUMA_NODES[reserved]},
            topology={"policy": "SingleNUMANode"},
            memory={"policy": "Static"},
        )

    def move(self, to: int) -> None:
        """Let it move to the other NUMA node; returns when that is done and reported."""
        self.begin(to)
        self.wait(to)

    def begin(self, to: int) -> None:
        """Let it move to the other NUMA node."""
        self.lab.apply(self.policy(1 - to))

    def wait(self, to: int) -> None:
        """Wait until it has moved, and that is reported."""
        self.lab.wait(lambda: self._rests_on(to), f"the container to move to NUMA node {to}")

    def result(self) -> Followed:
        """What the workload has written down so far."""
        return self._follower.result()

    @property
    def _follower(self) -> Follower:
        return Follower(self.lab, NAME, (NEIGHBOUR,))

    def _rests_on(self, numa_node: int) -> bool:
        """Whether the container is on this NUMA node alone, and nothing of a move is left."""
        entry = self._entry()
        if entry is None or entry.moving is not None or not self.lab.in_force():
            return False
        return [str(one) for one in entry.mems] == [str(numa_node)]

    def _entry(self) -> ContainerAssignment | None:
        assignment = self.lab.assignment()
        found = assignment.spec.containers if assignment else ()
        return next((one for one in found if one.pod == NAME), None)
