"""A workload in a container of a virtual node, which follows its CPUs."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from numapin_campaigns.workload.notice import CPUS_FOLDER, Followed, parse_followed
from numapin_lab.vm.node import HOST, GuestDaemon
from numapin_lab.vm.running_lab import RunningVmLab

RUN: Final = Path("/run/workload")


@dataclass(frozen=True)
class Follower:
    """A process in the one container of `pod`, a pod with the volume of docs/notice.md.

    `others`: pods whose one container must have none of its CPUs. `milliseconds`: how often it asks
    for its CPUs; the answers take an emulated CPU most of its time if that is 1.
    """

    lab: RunningVmLab
    pod: str
    others: tuple[str, ...]
    milliseconds: int = 1

    def start(self) -> None:
        """Start it; returns when it has asked for its CPUs."""
        daemon = self._daemon()
        self.lab.machine(f"rm -f {daemon.log}")
        daemon.start()
        self.lab.wait(lambda: '"cpus"' in self.log(), f"the workload of {self.pod} to begin")

    def stop(self) -> None:
        """End it; returns when it has written its last line."""
        end = f"pid=$(cat {self._folder}/pid); kill $pid"
        self.lab.machine(f"{end}; while kill -0 $pid; do sleep .1; done")

    def log(self) -> str:
        """What it has written down so far."""
        return self.lab.machine(f"cat {self._folder}/log")

    def result(self) -> Followed:
        """The same, parsed."""
        return parse_followed(self.log().splitlines(keepends=True))

    @property
    def _folder(self) -> Path:
        return RUN / self.pod

    def _daemon(self) -> GuestDaemon:
        """The process in the guest, which has the host's files in a folder."""
        lab = self.lab
        state = lab.look()
        group, _ = state.of(lab.container_id(self.pod))
        file = f"/proc/{group.pids[0]}/root{CPUS_FOLDER}/cpus"
        module = ("-m", "numapin_campaigns.workload.program")
        own, *others = (str(lab.container(name)) for name in (self.pod, *self.others))
        asks = (str(self.milliseconds), own, file, *others)
        command = ("chroot", HOST, sys.executable, *module, *asks)
        return GuestDaemon("workload", self._folder, command, lab.machine)
