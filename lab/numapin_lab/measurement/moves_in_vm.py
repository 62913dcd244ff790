"""Move a container back and forth between two NUMA nodes, while a workload follows its CPUs.

Each move is that of a policy whose reserved CPUs are edited: the container is outdated then, and
mode Dynamic moves it to the other NUMA node, with its memory. The node is a virtual machine.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from numapin_api.nodeassignment import ContainerAssignment
from numapin_lab.measurement.notice import CPUS_FOLDER, Followed, parse_followed, with_cpus_file
from numapin_lab.running_lab import pod, policy
from numapin_lab.vm.node import HOST, GuestDaemon
from numapin_lab.vm.running_lab import RunningVmLab

NAME: Final = "told"
NEIGHBOUR: Final = "neighbour"
RUN: Final = Path("/run/workload")
NUMA_NODES: Final = ("0-3", "4-7")
"""The CPUs of each; all of one are reserved, so a container has to go to the other."""


@dataclass(frozen=True)
class BackAndForth:
    """A container on a virtual node, and how long it is told before its CPUs leave."""

    lab: RunningVmLab
    notice: str

    @contextmanager
    def followed(self) -> Iterator[GuestDaemon]:
        """Meanwhile a pod runs on NUMA node 1, and a workload in its container follows its CPUs."""
        lab = self.lab
        lab.apply(self.policy(0))
        lab.wait_in_force()
        lab.apply(with_cpus_file(pod(NAME, cpu="1", memory="64Mi")), pod(NEIGHBOUR))
        lab.wait_running(NAME, NEIGHBOUR)
        lab.wait(lambda: self._rests_on(1), "the container to have its CPU")
        daemon = self._workload()
        lab.machine(f"rm -f {RUN}/log")
        daemon.start()
        lab.wait(lambda: '"cpus"' in self._log(), "the workload to begin")
        try:
            yield daemon
        finally:
            lab.machine(f"kill $(cat {RUN}/pid); while kill -0 $(cat {RUN}/pid); do sleep .1; done")

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
        return parse_followed(self._log().splitlines(keepends=True))

    def _log(self) -> str:
        return self.lab.machine(f"cat {RUN}/log")

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

    def _workload(self) -> GuestDaemon:
        """The process in the guest, which has the host's files in a folder."""
        lab = self.lab
        group, _ = lab.look().of(lab.container_id(NAME))
        file = f"/proc/{group.pids[0]}/root{CPUS_FOLDER}/cpus"
        module = ("-m", "numapin_lab.measurement.workload")
        cgroups = (str(lab.container(name)) for name in (NAME, NEIGHBOUR))
        command = ("chroot", HOST, sys.executable, *module, next(cgroups), file, *cgroups)
        return GuestDaemon("workload", RUN, command, lab.machine)
