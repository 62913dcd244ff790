"""What is left of a chaos run with moves: what its workloads and numapin's parts wrote down."""

import base64
import gzip
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from numapin_campaigns.frame.downtime import Downtime, noticed_after
from numapin_campaigns.moves.judgement import Announcement, Witness
from numapin_campaigns.moves.node import RESIZED, WHOLE, Notice
from numapin_campaigns.moves.plan import Resize
from numapin_campaigns.moves.report import MadeRound
from numapin_campaigns.moves.rounds import GuestClock
from numapin_campaigns.parts.all_parts import Parts
from numapin_campaigns.parts.logs import Line, complaints, hangs_noticed, parse, warnings
from numapin_campaigns.parts.part import AGENTS, STANDBY
from numapin_campaigns.workload.following import Follower
from numapin_campaigns.workload.notice import parse_followed
from numapin_lab.vm.node import GuestDaemon
from numapin_lab.vm.running_lab import RunningVmLab

LOG_SECONDS: Final = 600.0


@dataclass(frozen=True)
class Evidence:
    """The texts of the workloads by pod, and the logs of numapin's parts by name."""

    workloads: Mapping[str, str]
    logs: Mapping[str, str]

    @classmethod
    def collect(cls, lab: RunningVmLab, followers: Mapping[str, Follower], parts: Parts) -> Self:
        """End the workloads, and read everything."""
        for follower in followers.values():
            follower.stop()
        return cls(
            {name: follower.log() for name, follower in followers.items()},
            {name: _log(lab, parts, name) for name in AGENTS},
        )

    def write(self, folder: Path) -> None:
        """Write all of it, for people."""
        for name, text in {**self.workloads, **self.logs}.items():
            (folder / f"chaos-{name}.log").write_text(text)

    def witnesses(self, rounds: Sequence[MadeRound]) -> list[Witness]:
        """What each workload saw."""
        return [
            Witness(pod, parse_followed(text.splitlines(keepends=True)), without_cpus(pod, rounds))
            for pod, text in self.workloads.items()
        ]

    def complaints(self, downtimes: Sequence[Downtime]) -> list[str]:
        """Errors logged, except while the API server was away, and workloads that died."""
        found = [f"logged: {one}" for each in self._lines() for one in complaints(each, downtimes)]
        ended = (pod for pod, text in self.workloads.items() if '"asked"' not in text)
        return found + [f"the workload of {pod} did not write its last line" for pod in ended]

    def warnings(self) -> dict[str, int]:
        """How often each warning was logged."""
        counted = zip(self.logs, self._lines(), strict=True)
        return {f"{name} {text}": n for name, each in counted for text, n in warnings(each)}

    def noticed_seconds(self, downtimes: Sequence[Downtime]) -> list[float | None]:
        """After which time the standby noticed each stop of the enforcer."""
        return noticed_after(downtimes, hangs_noticed(parse(self.logs[STANDBY].splitlines())))

    def _lines(self) -> Iterator[list[Line]]:
        return (list(parse(text.splitlines())) for text in self.logs.values())


def announcements(notices: Sequence[Notice], clock: GuestClock) -> list[Announcement]:
    """The notices, with times of the guest's clock."""
    return [Announcement(one.pod, one.cpus, clock.at(one.seen_at)) for one in notices]


def without_cpus(pod: str, rounds: Sequence[MadeRound]) -> list[tuple[float, float]]:
    """When the container of a pod had no exclusive CPUs by the plan, on the guest's clock.

    From the resize that takes them to the end of the round that gives it some again.
    """
    found: list[tuple[float, float]] = []
    began: float | None = None
    for one in rounds:
        if pod == RESIZED and isinstance(one.change, Resize):
            if one.change.cpu not in WHOLE:
                began = one.began
            elif began is not None:
                found.append((began, one.ended))
                began = None
    return found if began is None else [*found, (began, float("inf"))]


def _log(lab: RunningVmLab, parts: Parts, name: str) -> str:
    """The whole log of a part; the guest's serial line is slow, so it is packed."""
    daemon = parts[name].daemon
    if not isinstance(daemon, GuestDaemon):
        return (lab.agent(name).folder / "log").read_text(errors="replace")
    packed = lab.machine(f"gzip -c {daemon.log} | base64", LOG_SECONDS)
    return gzip.decompress(base64.b64decode(packed)).decode(errors="replace")
