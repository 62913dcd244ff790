"""The pods of a run, and what becomes of them."""

import random
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from numapin_api import names
from numapin_benchmarks.scheduling.played_cluster import PODS, RUNNING, report
from numapin_lab.controlplane.api import AnswerError
from numapin_lab.controlplane.servers import ControlPlane

TICK_SECONDS: Final = 0.2
LAST_SECONDS: Final = 150.0
"""A run is given up then: pods are left that nothing binds."""

STARTS_SECONDS: Final = 1.0
"""From the binding of a pod to the phase Running."""


@dataclass(frozen=True)
class Pod:
    """A pod of a run: when it comes, and for how long it lives once it is bound."""

    name: str
    cpus: int
    at_seconds: float
    lives_seconds: float

    @property
    def body(self) -> dict[str, Any]:
        """A Guaranteed pod."""
        amount = {"cpu": str(self.cpus), "memory": f"{self.cpus}Gi"}
        resources = {"requests": amount, "limits": amount}
        container = {"name": "c", "image": "none", "resources": resources}
        return {"metadata": {"name": self.name}, "spec": {"containers": [container]}}


@dataclass
class Fates:
    """What became of the pods of one run; times are seconds from its start.

    Attributes:
        created: when each pod was created.
        bound: when it was seen to be bound.
        refused: those that the operator refused CPUs or memory.
        ended: those whose time was over.
        most_pending: how many waited for a node at the same time, at most.
    """

    created: dict[str, float] = field(default_factory=dict)
    bound: dict[str, float] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)
    ended: set[str] = field(default_factory=set)
    most_pending: int = 0

    def waited(self) -> list[float]:
        """How long each bound pod waited for its node, shortest first."""
        return sorted(at - self.created[name] for name, at in self.bound.items())


def random_pods(count: int, seed: int, per_second: float = 5.0) -> list[Pod]:
    """The same pods for the same seed: of one to seven CPUs, for 5 to 20 s."""
    chance = random.Random(seed)
    return [
        Pod(f"pod-{at:03d}", chance.randint(1, 7), at / per_second, chance.uniform(5, 20))
        for at in range(count)
    ]


def play(plane: ControlPlane, wanted: Sequence[Pod]) -> Fates:
    """Create pods in time, run those that are bound, and end those whose time is over."""
    fates, begun = Fates(), time.monotonic()
    by_name = {one.name: one for one in wanted}
    while len(fates.ended) < len(wanted):
        now = time.monotonic() - begun
        if now > LAST_SECONDS:
            break
        for one in wanted[len(fates.created) :]:
            if one.at_seconds > now:
                break
            plane.api.create(PODS, one.body)
            fates.created[one.name] = now
        seen = [one for one in plane.api.get(PODS)["items"] if one["metadata"]["name"] in by_name]
        pending = [one for one in seen if not one["spec"].get("nodeName")]
        fates.most_pending = max(fates.most_pending, len(pending))
        for body in seen:
            _play_one(plane, by_name[body["metadata"]["name"]], body, fates, now)
        time.sleep(TICK_SECONDS)
    return fates


def _play_one(
    plane: ControlPlane, pod: Pod, body: dict[str, Any], fates: Fates, now: float
) -> None:
    """Do what a kubelet does with a pod, if it is bound."""
    name = pod.name
    if names.REFUSED_ANNOTATION in (body["metadata"].get("annotations") or {}):
        fates.refused.add(name)
    if not body["spec"].get("nodeName") or name in fates.ended:
        return
    lived = now - fates.bound.setdefault(name, now)
    if lived > pod.lives_seconds:
        _end(plane, name)
        fates.ended.add(name)
    elif lived > STARTS_SECONDS and body["status"]["phase"] == "Pending":
        report(plane, "Pod", f"{PODS}/{name}", RUNNING)


def _end(plane: ControlPlane, name: str) -> None:
    """Delete a pod at once, as its kubelet does once its containers have ended."""
    options = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
    with suppress(AnswerError):
        plane.api.request("DELETE", f"{PODS}/{name}", options)
