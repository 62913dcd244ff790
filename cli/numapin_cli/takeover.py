"""What becomes of the containers that a static kubelet has pinned, under a policy, and back.

Does no I/O.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.quantity import plural
from numapin_api.schema.plain_assignment import (
    ContainerAssignment,
    KubeletContainer,
    NodeAssignmentSpec,
)
from numapin_api.topology import Topology
from numapin_cli.advice.remedies.edits import edited, shown, single_edits
from numapin_cli.kubelet.pools import in_force, pool_notes
from numapin_cli.what_if import Foreseen, foresee_from
from numapin_enforcer.node.kubelet_state import CpuState, MemoryState, pinned
from numapin_operator.nodes.decide import NodePicture
from numapin_operator.placement import (
    PodView,
    exclusive_cpus,
    mark_outdated,
    resolve,
    with_reserved,
)


@dataclass(frozen=True, slots=True)
class ContainerOutcome:
    """What becomes of one container.

    Attributes:
        name: namespace, pod and container; the pod's UID if it is not known.
        cpus: the CPUs that the kubelet has given it; empty if it has bound its memory alone.
        keeps: whether numapin gives it just these, and moves no memory.
        said: the same for people, with the reason.
    """

    name: str
    cpus: CpuSet
    keeps: bool
    said: str


@dataclass(frozen=True, slots=True)
class Takeover:
    """What becomes of a node: its containers, and what else differs."""

    outcomes: tuple[ContainerOutcome, ...]
    notes: tuple[str, ...]
    stalled: str = ""
    """Why the policy cannot be in force, with an edit of it that keeps what the kubelet did."""

    @property
    def keeps_all(self) -> bool:
        """Whether every container keeps its CPUs, and the NUMA nodes of its memory."""
        return not self.stalled and all(one.keeps for one in self.outcomes)


def take_over(
    picture: NodePicture, topology: Topology, cpu: CpuState, memory: MemoryState
) -> Takeover:
    """What the operator decides when the enforcer reports what the kubelet has pinned.

    Args:
        picture: what is known of the node, with an assignment and a governing policy.
        topology: its hardware.
        cpu: the checkpoint of the kubelet's CPU manager.
        memory: that of its memory manager.
    """
    containers = tuple(KubeletContainer.from_wire(one.to_wire()) for one in pinned(cpu, memory))
    reported = _reported(picture, containers)
    foreseen = foresee_from(reported)
    spec = foreseen.spec or NodeAssignmentSpec()
    found = _Outcomes(foreseen, spec, topology, _outdated(picture, topology, spec))
    outcomes = tuple(found.of(one) for one in containers)
    notes = (*pool_notes(reported, cpu, spec, topology), *found.memory_notes(containers))
    stalled = foreseen.said + _remedy(reported, cpu, containers) if foreseen.is_stalled else ""
    return Takeover(outcomes, notes, stalled)


def _remedy(picture: NodePicture, cpu: CpuState, containers: Sequence[KubeletContainer]) -> str:
    """An edit of the policy with which all containers keep what the kubelet gave them.

    One that leaves the shared CPUs as they are comes first. Empty if no edit of one field does it.
    """
    before, found = picture.ranked[0].spec, dict[bool, str]()
    present = {pod.uid for pod in picture.pods}
    for field, value in single_edits(before, "Guaranteed"):
        spec = in_force(picture, edited(before, field, value))
        if spec is None or spec.pools is None:
            continue
        given = {one.key: one.cpus for one in spec.containers}
        kept = (
            given.get(one.key) == one.cpus
            for one in containers
            if one.cpus and one.pod_uid in present
        )
        if all(kept):
            found.setdefault(spec.pools.shared == cpu.shared, f"{field}: {shown(value)}")
    best = found.get(True) or found.get(False)
    return f"; with {best} every container keeps its CPUs" if best else ""


def _reported(picture: NodePicture, containers: tuple[KubeletContainer, ...]) -> NodePicture:
    """The picture once the enforcer has reported these containers, and is not stalled by them."""
    assignment = picture.assignment
    assert assignment is not None
    status = replace(
        assignment.status,
        kubelet_containers=containers,
        observed_generation=assignment.generation,
        conditions=(),
    )
    return replace(picture, assignment=replace(assignment, status=status))


def _outdated(
    picture: NodePicture, topology: Topology, spec: NodeAssignmentSpec
) -> dict[tuple[str, ...], str]:
    """Why the policy would not place a container as it is, by namespace, pod and container."""
    assert picture.node is not None
    governing = picture.ranked[0].spec
    if governing.mode == "None" or spec.pools is None:
        return {}
    policy = resolve(topology, with_reserved(governing, topology, picture.node.system))
    found = mark_outdated(policy, spec, picture.pods, edited=True)[1]
    return {(one.namespace, one.pod, one.container): one.why for one in found}


_WAIT: Final = "but its NodeAssignment does not say so yet: wait for it"


class _Outcomes:
    """Says of each container what becomes of it."""

    def __init__(
        self,
        foreseen: Foreseen,
        spec: NodeAssignmentSpec,
        topology: Topology,
        outdated: dict[tuple[str, ...], str],
    ) -> None:
        self._pods = {pod.uid: pod for pod in foreseen.picture.pods}
        self._then, self._refused = _by_key(spec), {one.pod_uid: one for one in spec.refused}
        self._waiting = {
            (one.pod_uid, one.container): f"{one.reason}, {one.message}"
            for one in spec.refused_resizes or ()
        }
        self._stalled = foreseen.said if foreseen.is_stalled else ""
        self._is_off = spec.mode == "None"
        self._now = _by_key(foreseen.before) if foreseen.before is not None else None
        self._topology, self._outdated = topology, outdated

    def of(self, one: KubeletContainer) -> ContainerOutcome:
        """What becomes of one container."""
        keeps, said = self._outcome(one)
        return ContainerOutcome(self._name(one), one.cpus, keeps, said)

    def memory_notes(self, containers: Iterable[KubeletContainer]) -> Iterator[str]:
        """The containers with CPUs of their own whose memory the kubelet alone binds."""
        for one in containers:
            then = self._then.get(one.key)
            if one.cpus and one.mems and then is not None and not then.mems:
                yield (
                    f"{self._name(one)}: its memory stays on {_numa(one.mems)}, and numapin does"
                    " not count it as bound there"
                )

    def _outcome(self, one: KubeletContainer) -> tuple[bool, str]:
        pod, then = self._pods.get(one.pod_uid), self._then.get(one.key)
        if pod is None:
            return self._gone(one)
        if _ended(pod, one.container):
            return True, "has ended"
        moves = self._moves_memory(pod, one, then)
        if not one.cpus:
            return self._memory(pod, one, then, moves)
        if then is None or then.cpus != one.cpus:
            gets = f"would get CPUs {then.cpus}" if then and then.cpus else "would share CPUs"
            return False, f"{gets}: {self._why_not(pod, one)}"
        now = self._now.get(one.key) if self._now is not None else then
        if now is None or now.cpus != one.cpus:
            return False, f"keeps them, {_WAIT}"
        return (
            not moves,
            f"keeps them, and {moves}" if moves else f"keeps them{self._until(pod, one)}",
        )

    def _gone(self, one: KubeletContainer) -> tuple[bool, str]:
        """A container without a pod: the kubelet forgets its CPUs soon, its memory with a new pod.

        Source: Kubernetes v1.36, cpumanager, `reconcileState`, and memorymanager,
        `removeStaleState`, which only the admission of a pod calls.
        """
        said = "no pod with this UID runs on the node, by the files that are given"
        if one.cpus:
            return False, said
        return (
            True,
            f"memory on {_numa(one.mems)}; {said}; the kubelet forgets it with the next pod",
        )

    def _memory(
        self, pod: PodView, one: KubeletContainer, then: ContainerAssignment | None, moves: str
    ) -> tuple[bool, str]:
        """What becomes of a container of which the kubelet has bound the memory alone."""
        memory = f"memory on {_numa(one.mems)}"
        if moves:
            return False, f"{memory}, {moves}"
        waits = self._waiting.get((pod.uid, one.container))
        gets = f"; waits for CPUs: {waits}" if waits else ""
        gets = f"; gets CPUs {then.cpus}" if then and then.cpus else gets
        if then is None or not then.mems:
            return True, f"{memory}, stays there, and numapin does not bind it{gets}"
        now = self._now.get(one.key) if self._now is not None else then
        if now is None or now.mems != one.mems:
            return False, f"{memory}, keeps it, {_WAIT}"
        return True, f"{memory}, keeps it{self._until(pod, one)}{gets}"

    def _until(self, pod: PodView, one: KubeletContainer) -> str:
        why = self._outdated.get((pod.namespace, pod.name, one.container))
        return f" until it ends: {why}" if why else ""

    def _moves_memory(
        self, pod: PodView, one: KubeletContainer, then: ContainerAssignment | None
    ) -> str:
        """Where memory would be moved that the kubelet has bound, and why; empty if nowhere."""
        if then is None or not (then.mems and one.mems) or then.mems == one.mems:
            return ""
        reasons = (
            (pod.pod_level, "resources of a pod as a whole are not taken over"),
            (
                one.mems - self._topology.mems,
                f"{_numa(one.mems)} is not there with memory",
            ),
        )
        other = "the state does not say where all memory of its pod is"
        why = next((text for applies, text in reasons if applies), other)
        return f"its memory would be moved to {_numa(then.mems)}: {why}"

    def _why_not(self, pod: PodView, one: KubeletContainer) -> str:
        view = next((each for each in pod.containers if each.name == one.container), None)
        count = exclusive_cpus(pod, view) if view is not None else 0
        offline = one.cpus - self._topology.online
        refusal = self._refused.get(pod.uid)
        reasons = (
            (self._stalled, f"the policy cannot be in force ({self._stalled})"),
            (pod.problem, pod.problem),
            (self._is_off, "the policy's mode is None"),
            (view is None, "its pod has no such container"),
            (pod.pod_level, "resources of a pod as a whole are not taken over"),
            (
                count != len(one.cpus),
                f"it has {plural(len(one.cpus), 'CPU')}, and requests {count}",
            ),
            (offline, f"CPUs {offline} are not online"),
            (refusal, f"{refusal.reason}, {refusal.message}" if refusal else ""),
        )
        other = "another container of its pod cannot keep its CPUs"
        return next((text for applies, text in reasons if applies), other)

    def _name(self, one: KubeletContainer) -> str:
        pod = self._pods.get(one.pod_uid)
        return f"{f'{pod.namespace}/{pod.name}' if pod else one.pod_uid} {one.container}"


def _by_key(spec: NodeAssignmentSpec) -> dict[tuple[str, str], ContainerAssignment]:
    return {one.key: one for one in spec.containers}


def _ended(pod: PodView, container: str) -> bool:
    return any(one.name == container and one.ended for one in pod.containers)


def _numa(mems: MemSet) -> str:
    return f"NUMA node {mems}" if len(mems) == 1 else f"NUMA nodes {mems}"


def rows(outcomes: Sequence[ContainerOutcome]) -> Iterator[str]:
    """A line for each container, in columns."""
    wide = max((len(one.name) for one in outcomes), default=0)
    cpus = max((len(str(one.cpus)) for one in outcomes), default=0)
    for one in outcomes:
        mark = " " if one.keeps else "!"
        columns = (f"{one.name:<{wide}}", *([f"{one.cpus!s:<{cpus}}"] if cpus else []), one.said)
        yield f"{mark} {'  '.join(columns)}"
