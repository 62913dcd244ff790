"""What became of pods, and what must hold of them. Does no I/O."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from numapin_campaigns.frame.report import spread

SOON_SECONDS: Final = 1.0
"""A pod counts as aligned from its start if it has its CPUs this soon after it is bound: by then no
container of it has started, or it has just started."""


class Way(StrEnum):
    """Who sees to it that a pod gets CPUs of one NUMA node."""

    HOLD = "Hold"
    SHARE = "Share"
    PLUG_IN = "plug-in"
    KUBELET = "kubelet"

    @property
    def meaning(self) -> str:
        """For people."""
        return _MEANINGS[self]


_MEANINGS: Final = {
    Way.HOLD: "numapin holds pods until a node has a place",
    Way.SHARE: "numapin, after binding; what does not fit shares",
    Way.PLUG_IN: "numapin, after binding by a scheduler that knows NodeResourceTopologies",
    Way.KUBELET: "kubelets with static CPU Manager and single-numa-node; what does not fit fails",
}


@dataclass(slots=True)
class Fate:
    """What became of a planned pod; times are in seconds since its first creation.

    Attributes:
        bound: when it was bound, or accepted by its kubelet; None: never.
        placed: when it had CPUs of one NUMA node; None: never.
        refusals: how often it failed and was created again.
        node: where it runs.
        place: the node that has CPUs for it.
        ended: whether it has run for its time.
    """

    name: str
    bound: float | None = None
    placed: float | None = None
    refusals: int = 0
    node: str = ""
    place: str = ""
    ended: bool = False

    @property
    def aligned(self) -> str:
        """Since when it has had CPUs of one NUMA node."""
        if self.placed is None:
            return "never"
        late = self.bound is not None and self.placed - self.bound > SOON_SECONDS
        return "later" if late else "atStart"


@dataclass(frozen=True, slots=True)
class Outcome:
    """A run in one way.

    Attributes:
        fates: of all pods.
        seconds: how long it took.
        load: of the machine at its end, as `uptime` prints it first.
        broken: what must hold and did not, of assignments.
    """

    way: Way
    fates: Sequence[Fate]
    seconds: float
    load: float
    broken: Sequence[str] = field(default=())

    def violations(self) -> Iterator[dict[str, Any]]:
        """What must hold and does not."""
        for text in self.broken:
            yield {"way": str(self.way), "seen": text}
        if self.way is Way.HOLD:
            for text in _unheld(self.fates):
                yield {"way": str(self.way), "seen": text}

    def problems(self) -> list[str]:
        """Pods that did not come to their end, where numapin or a kubelet has to see to it.

        The plug-in drops what it knows of a node seconds after a pod has ended, and then nothing
        has the scheduler look again: if nothing else happens, pods wait up to five minutes.
        Source: kube-scheduler v1.36, `DefaultPodMaxInUnschedulablePodsDuration`.
        """
        if self.way is Way.PLUG_IN:
            return []
        left = [one.name for one in self.fates if not one.ended]
        return [f"{self.way}: {len(left)} pods did not end: {', '.join(left[:5])}"] if left else []

    def figures(self) -> dict[str, Any]:
        """What is reported."""
        counted = [one.aligned for one in self.fates]
        return {
            "pods": len(counted),
            "atStart": counted.count("atStart"),
            "later": counted.count("later"),
            "never": counted.count("never"),
            "failedPods": sum(one.refusals for one in self.fates),
            "placedSeconds": spread(self.times()),
            "boundSeconds": spread(sorted(_known(one.bound for one in self.fates))),
            "seconds": round(self.seconds),
            "load": round(self.load, 1),
        }

    def times(self) -> list[float]:
        """Seconds until each pod that was placed had its place, sorted."""
        return sorted(round(one, 2) for one in _known(one.placed for one in self.fates))


def _known(times: Iterable[float | None]) -> Iterator[float]:
    return (one for one in times if one is not None)


def _unheld(fates: Iterable[Fate]) -> Iterator[str]:
    """Pods that were bound before a node had a place for them, or elsewhere."""
    for one in fates:
        if one.bound is None:
            continue
        if one.aligned != "atStart":
            yield f"{one.name} was bound without a place"
        elif one.place != one.node:
            yield f"{one.name} was bound to {one.node}, and has its place on {one.place}"
