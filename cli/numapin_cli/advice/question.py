"""The question what a pod would get on a node, also after changes of the node or the pod.

Does no I/O.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from numapin_api.cpupolicy import CpuPolicySpec
from numapin_api.schema.plain_assignment import ContainerAssignment, FreeHugepages
from numapin_api.topology import page_size_bytes
from numapin_cli.advice.fate import Fate, fate_in
from numapin_operator.nodes.decide import NodePicture
from numapin_operator.nodes.picture import picture_of
from numapin_operator.observe.assignments.view import AssignmentView
from numapin_operator.observe.cache import ClusterState
from numapin_operator.placement import HUGEPAGES_PREFIX, PodView
from numapin_operator.policies.selection import mark_selected

LAST: Final = "~"
"""Sorts after every time: the pod was bound last."""

MOST_TRIES: Final = 2000
"""The most plans for one answer; each takes a few milliseconds."""


class TooManyTriesError(Exception):
    """`MOST_TRIES` plans have been made; what was found so far is valid."""


@dataclass
class Tries:
    """Counts the plans that are made, by what is changed."""

    counts: dict[str, int] = field(default_factory=dict)
    stopped: bool = False

    def plan(self, what: str, picture: NodePicture, uid: str) -> Fate:
        """Plan once more: the fate of a pod.

        Raises:
            TooManyTriesError: enough plans have been made.
        """
        if sum(self.counts.values()) >= MOST_TRIES:
            self.stopped = True
            raise TooManyTriesError
        self.counts[what] = self.counts.get(what, 0) + 1
        return fate_in(picture, uid)


@dataclass(frozen=True)
class Question:
    """A pod that is created on a node now, after all others: what would it get?

    Attributes:
        state: the cluster.
        node: the node's name.
        pod: the pod as it is.
        tries: counts the plans.
        now: the time in seconds since 1970; without it no container is moved to make room.
        stays: whether the pod stays as it runs, because a resize of it waits; else it is created
            again.
    """

    state: ClusterState
    node: str
    pod: PodView
    tries: Tries = field(default_factory=Tries)
    now: float | None = None
    stays: bool = False

    def plan(
        self, what: str, ended: Collection[str] = (), *, frees_hugepages: bool = False
    ) -> Fate:
        """Plan once more: the fate of the pod; see `after`.

        Raises:
            TooManyTriesError: enough plans have been made.
        """
        picture = self.after(ended, frees_hugepages=frees_hugepages)
        return self.tries.plan(what, picture, self.subject.uid)

    @property
    def subject(self) -> PodView:
        """The pod that is asked about, as it is planned."""
        return self.pod if self.stays else self.newcomer

    @property
    def newcomer(self) -> PodView:
        """The pod as it would be created again, on this node."""
        return newcomer(self.pod, self.node)

    def after(self, ended: Collection[str], *, frees_hugepages: bool = False) -> NodePicture:
        """The node after other pods have ended, and this one was created again unless it stays.

        Args:
            ended: the UIDs of the pods that end.
            frees_hugepages: see `without`.
        """
        if not self.stays:
            ended = {self.pod.uid, *ended}
        picture = self.without(ended, frees_hugepages=frees_hugepages)
        others = tuple(pod for pod in picture.pods if pod.uid != self.pod.uid)
        return self.with_pod(replace(picture, pods=others), self.subject)

    def without(self, uids: Collection[str], *, frees_hugepages: bool = False) -> NodePicture:
        """The node after some pods and all their processes have ended.

        Args:
            uids: the pods that end.
            frees_hugepages: whether the kernel then has all huge pages free that were given to
                them; else it has no more of them free than now.
        """
        picture = picture_of(self.state, self.node)
        pods = tuple(pod for pod in picture.pods if pod.uid not in uids)
        assignment = picture.assignment
        if assignment is not None:
            assignment = _ended(assignment, uids, frees_hugepages=frees_hugepages)
        return replace(picture, pods=pods, assignment=assignment).at(self.now)

    def with_pod(self, picture: NodePicture, pod: PodView) -> NodePicture:
        """The node with one more pod."""
        if picture.ranked:
            selection = picture.ranked[0].spec.pods
            (pod,) = mark_selected(selection, (pod,), self.state.namespaces)
        return replace(picture, pods=(*picture.pods, pod))

    def with_policy(self, picture: NodePicture, spec: CpuPolicySpec) -> NodePicture:
        """The node after its governing policy was edited."""
        governing = picture.ranked[0]
        edited = replace(governing, spec=spec, generation=governing.generation + 1)
        pods = tuple(replace(pod, selected=True) for pod in picture.pods)
        return replace(
            picture,
            ranked=(edited, *picture.ranked[1:]),
            pods=mark_selected(spec.pods, pods, self.state.namespaces),
        )

    def entry(self, container: str) -> ContainerAssignment | None:
        """The entry of one of the pod's containers; None if it shares CPUs."""
        assignment = self.state.assignments.get(self.node)
        entries = assignment.spec.containers if assignment else ()
        key = self.pod.uid, container
        return next((one for one in entries if one.key == key), None)

    def held_by_others(self) -> dict[str, list[ContainerAssignment]]:
        """The entries of the node's other pods, by UID."""
        assignment = self.state.assignments.get(self.node)
        held: dict[str, list[ContainerAssignment]] = {}
        for entry in assignment.spec.containers if assignment else ():
            if entry.pod_uid != self.pod.uid:
                held.setdefault(entry.pod_uid, []).append(entry)
        return held


def newcomer(pod: PodView, node: str) -> PodView:
    """A pod as it would be created again and bound to a node: none of it has run yet."""
    return replace(
        pod,
        uid=f"new-{pod.uid}"[:64],
        node=node,
        bound=LAST,
        checked=False,
        terminal=False,
        deleting=False,
        containers=tuple(replace(container, ended=False) for container in pod.containers),
    )


def _ended(
    assignment: AssignmentView, uids: Collection[str], *, frees_hugepages: bool
) -> AssignmentView:
    status = assignment.status
    free = status.free_hugepages
    if frees_hugepages:
        gone = [one for one in assignment.spec.containers if one.pod_uid in uids]
        free = tuple(_freed(one, gone) for one in free)
    status = replace(
        status,
        running=tuple(uid for uid in status.running if uid not in uids),
        kubelet_containers=tuple(
            one for one in status.kubelet_containers if one.pod_uid not in uids
        ),
        containers=tuple(one for one in status.containers if one.pod_uid not in uids),
        free_hugepages=free,
    )
    return replace(assignment, status=status, has_running=True)


def _freed(at: FreeHugepages, gone: Sequence[ContainerAssignment]) -> FreeHugepages:
    """The free huge pages of one NUMA node after containers have freed theirs."""
    pages = dict(at.pages)
    for block in (block for entry in gone for block in entry.memory):
        size = block.resource.removeprefix(HUGEPAGES_PREFIX)
        if size in pages and block.numa_nodes == (at.numa_node,):
            pages[size] += block.bytes // page_size_bytes(size)
    return replace(at, pages=pages)
