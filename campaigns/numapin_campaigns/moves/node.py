"""The node of a chaos run with moves: its pods, and what is read and asked of them."""

import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, NamedTuple

from numapin_api import names
from numapin_api.cpuset import CpuSet
from numapin_api.nodeassignment import ContainerAssignment, NodeAssignment
from numapin_campaigns.frame.observe import AWAY, PODS, Observer
from numapin_campaigns.laws.virtual_node import problems
from numapin_campaigns.moves.plan import Change, Move, Stage
from numapin_campaigns.steps.resize import granted, resize
from numapin_campaigns.workload.back_and_forth import NAME, NEIGHBOUR, BackAndForth
from numapin_campaigns.workload.following import Follower
from numapin_campaigns.workload.notice import leaves_at, leaving_in, with_cpus_file
from numapin_lab.controlplane.api import AnswerError
from numapin_lab.errors import LabError
from numapin_lab.running_lab import RunningLab, pod
from numapin_lab.vm.running_lab import RunningVmLab

RESIZED: Final = "resized"
EXCLUSIVE: Final = (NAME, RESIZED)
EVERY_POD: Final = (*EXCLUSIVE, NEIGHBOUR)
ASK_MILLISECONDS: Final = 10
"""Two workloads that ask each millisecond leave an emulated machine no time for anything else."""

WHOLE: Final[Mapping[str, int]] = {"1": 1, "2": 2}
"""Amounts that are exclusive CPUs, and how many; with others a container has none."""


@dataclass
class Node:
    """Two pods with exclusive CPUs, and a neighbour on the shared pool.

    `numa_node` and `cpu` are what was asked for last: where the containers are, and how much the
    pod `resized` has.
    """

    lab: RunningVmLab
    notice: str
    numa_node: int = 1
    cpu: str = "1"

    def __post_init__(self) -> None:
        self._moves = BackAndForth(self.lab, self.notice)

    def fill(self) -> None:
        """Apply the policy and start the pods; returns when all of it is in force."""
        lab = self.lab
        lab.apply(self._moves.policy(1 - self.numa_node))
        lab.wait_in_force()
        owners = [with_cpus_file(pod(name, cpu=self.cpu, memory="64Mi")) for name in EXCLUSIVE]
        lab.apply(*owners, pod(NEIGHBOUR))
        lab.wait_running(*EVERY_POD)
        self.wait_settled()

    def followers(self) -> dict[str, Follower]:
        """A workload in each container with exclusive CPUs."""
        return {
            name: Follower(
                self.lab, name, tuple(one for one in EVERY_POD if one != name), ASK_MILLISECONDS
            )
            for name in EXCLUSIVE
        }

    def containers(self) -> dict[str, tuple[str, int]]:
        """The id of each pod's container, and how often it was restarted."""
        found = {}
        for name in EVERY_POD:
            (status,) = self.lab.pod(name)["status"]["containerStatuses"]
            found[name] = (status["containerID"], status["restartCount"])
        return found

    def begin(self, change: Change) -> None:
        """Ask for a change."""
        if isinstance(change, Move):
            self.numa_node = change.to
            self._moves.begin(change.to)
        else:
            self.cpu = change.cpu
            resize(self.lab, RESIZED, change.cpu)

    def stage(self, assignment: NodeAssignment | None) -> Stage:
        """How far the change has come by this NodeAssignment."""
        return stage_of(assignment, self.numa_node, self.cpu) if assignment else Stage.ASKED

    def wait_settled(self) -> None:
        """Return when the node is as it was asked for.

        Raises:
            LabError: it is not in time; the message says what is missing.
        """
        missing: list[str] = []

        def settled() -> bool:
            missing[:] = self.missing()
            return not missing

        try:
            self.lab.wait(settled, "the end of the change")
        except LabError as error:
            raise LabError(f"{error}: {'; '.join(missing)}") from error

    def missing(self) -> list[str]:
        """What is not as it was asked for, in spec, status, kubelet and kernel."""
        assignment = self.lab.assignment()
        if assignment is None:
            return ["there is no NodeAssignment"]
        found = [*misplaced(assignment, self.numa_node, self.cpu)]
        if granted(self.lab, RESIZED) != self.cpu:
            found.append(f"the kubelet has not granted {self.cpu}")
        return found or problems(self.lab)


def wanted_cpus(cpu: str) -> dict[str, int]:
    """How many exclusive CPUs each container has, with this amount for `resized`."""
    return {NAME: 1} | ({RESIZED: WHOLE[cpu]} if cpu in WHOLE else {})


def misplaced(assignment: NodeAssignment, numa_node: int, cpu: str) -> Iterator[str]:
    """What the spec does not give as it was asked for."""
    entries = {one.pod: one for one in assignment.spec.containers if one.exclusive}
    wanted = wanted_cpus(cpu)
    for name in sorted(entries.keys() | wanted.keys()):
        entry = entries.get(name)
        if entry is None:
            yield f"{name} has no CPUs of its own"
        elif len(entry.cpus) != wanted.get(name):
            yield f"{name} has {len(entry.cpus)} CPUs"
        elif entry.moving is not None:
            yield f"{name} moves"
        elif [str(one) for one in entry.mems] != [str(numa_node)]:
            yield f"{name} is on NUMA nodes {entry.mems}"


def stage_of(assignment: NodeAssignment, numa_node: int, cpu: str) -> Stage:
    """How far a change has come; containers move one after the other."""
    moving = [one for one in assignment.spec.containers if one.moving is not None]
    if moving:
        return min(_stage_of(one) for one in moving)
    return Stage.ASKED if any(misplaced(assignment, numa_node, cpu)) else Stage.DECIDED


def _stage_of(entry: ContainerAssignment) -> Stage:
    assert entry.moving is not None
    if entry.moving.leaving.isdisjoint(entry.cpus):
        return Stage.LEAVING
    return Stage.BEGUN if entry.moving.at is None else Stage.ANNOUNCED


class Notice(NamedTuple):
    """A pod's annotation was seen to say when these CPUs leave; monotonic seconds."""

    pod: str
    cpus: CpuSet
    seen_at: float


class Watch(Observer):
    """The newest NodeAssignment, and each notice of a pod's annotation; `with` it, a thread polls.

    While the API server is away, nothing changes.
    """

    def __init__(self, lab: RunningLab) -> None:
        super().__init__("watch")
        self._lab = lab
        self._texts: dict[str, str] = {}
        self.assignment: NodeAssignment | None = None
        self.notices: list[Notice] = []

    def look(self) -> None:
        """Read both."""
        with suppress(AnswerError, *AWAY):
            self._read_annotations()
            self.assignment = self._lab.assignment()

    def _read_annotations(self) -> None:
        items = self._lab.cluster.api.get(PODS)["items"]
        now = time.monotonic()
        for one in items:
            name = one["metadata"]["name"]
            text = one["metadata"].get("annotations", {}).get(names.CPUS_ANNOTATION, "")
            if text != self._texts.get(name):
                self._texts[name] = text
                if leaves_at(text):
                    self.notices.append(Notice(name, leaving_in(text), now))
