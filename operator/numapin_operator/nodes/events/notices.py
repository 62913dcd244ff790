"""Normal Events on pods: which CPUs a pod was given, what a pod waits for. Does no I/O."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from operator import attrgetter
from types import MappingProxyType
from typing import Final

from numapin_api.conditions.reasons import Reason
from numapin_api.cpupolicy import CpuPolicySpec
from numapin_api.cpuset import CpuSet
from numapin_api.quantity import exact_bytes, format_bytes, plural
from numapin_api.schema.plain_assignment import ContainerAssignment, NodeAssignmentSpec
from numapin_api.text import first_texts, join_texts
from numapin_api.topology import Topology
from numapin_operator.cluster import PodEvent
from numapin_operator.nodes.decide.decision import DEVICES_SECONDS, OnPausedNode
from numapin_operator.placement import PodView, Queued, Unaccepted, is_driver, why_near

NAMED_LENGTH: Final = 256
"""Characters of resources that an Event names."""

_PAUSED: Final = "it runs on shared CPUs until its node is paused no more"

NAMED_PODS: Final = 5
"""Pods that an Event names; of more it says how many there are."""


def notices_of_written(
    before: NodeAssignmentSpec | None,
    after: NodeAssignmentSpec,
    pods: Mapping[str, PodView],
    topology: Topology | None,
    lacking: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
) -> Iterator[PodEvent]:
    """What pods are told when `after` has been written in place of `before`."""
    yield from notices_of_pinned(before, after, topology, lacking)
    yield from notices_of_resized(before, after, pods, topology)


def with_places(
    notices: Iterable[PodEvent],
    pods: Mapping[str, PodView],
    topology: Topology,
    policy: CpuPolicySpec,
) -> Iterator[PodEvent]:
    """The Events; those of pods that got CPUs say what the places mean that the pods name, too.

    Args:
        notices: the Events.
        pods: those of the node, by UID.
        topology: the machine.
        policy: the policy that governs the node.
    """
    for told in notices:
        pod = pods.get(told.uid) if told.reason == Reason.CPUS_ASSIGNED else None
        why = why_near(policy, topology, pod) if pod is not None else ()
        yield replace(told, note="; ".join((told.note, *why))) if why else told


def notices_of_pinned(
    before: NodeAssignmentSpec | None,
    after: NodeAssignmentSpec,
    topology: Topology | None,
    lacking: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
) -> Iterator[PodEvent]:
    """One Event about each pod that has got exclusive CPUs from us with this write.

    `lacking` are the resources of which it was not known which devices the pods have, by UID.
    """
    known = {one.pod_uid for one in before.containers if not one.claimed} if before else set()
    fresh = (
        one
        for one in after.containers
        if one.exclusive and not one.claimed and one.pod_uid not in known
    )
    for uid, grouped in groupby(fresh, key=attrgetter("pod_uid")):
        entries = tuple(grouped)
        given = "; ".join(_given(entry, topology) for entry in entries)
        if lacks := lacking.get(uid):
            given = f"{given}; {_chosen_without(lacks)}"
        first = entries[0]
        yield PodEvent(
            first.namespace, first.pod, uid, Reason.CPUS_ASSIGNED, given, is_warning=False
        )


def notices_of_resized(
    before: NodeAssignmentSpec | None,
    after: NodeAssignmentSpec,
    pods: Mapping[str, PodView],
    topology: Topology | None,
) -> Iterator[PodEvent]:
    """One Event about each container of `pods` that has more or fewer CPUs with this write.

    Args:
        before: the spec so far.
        after: the spec that was written.
        pods: those of the node, by UID.
        topology: the machine.
    """
    had = {one.key: one for one in before.containers} if before else {}
    has = {one.key: one for one in after.containers}
    known = {uid for uid, _ in had}
    for key in dict.fromkeys((*had, *has)):
        one, earlier, pod = has.get(key), had.get(key), pods.get(key[0])
        if pod is None or pod.terminal or pod.deleting or key[0] not in known:
            continue
        entry = one or earlier
        if entry is None or entry.claimed or not _was_granted(pod, entry.container):
            continue
        cpus, cpus_before = (each.cpus if each else CpuSet() for each in (one, earlier))
        if cpus != cpus_before and (cpus <= cpus_before or cpus >= cpus_before):
            now = _given(one, topology) if one and cpus else f"container {key[1]}: shared CPUs"
            said = f"{now}; before the resize it had {cpus_before or 'shared CPUs'}"
            yield PodEvent(
                entry.namespace, entry.pod, key[0], Reason.CPUS_RESIZED, said, is_warning=False
            )


def _was_granted(pod: PodView, container: str) -> bool:
    return any(one.granted and not one.ended for one in pod.containers if one.name == container)


def notice_of_waiting(waiting: Queued | Unaccepted | OnPausedNode) -> PodEvent:
    """The Event about a pod that waits; pods of other namespaces are counted, not named.

    A restarted operator does not know whom it has told, so the Event is posted once.
    """
    pod = waiting.pod
    if isinstance(waiting, Queued):
        is_moved = bool(waiting.moving)
        reason = Reason.WAITING_FOR_MOVES if is_moved else Reason.WAITING_FOR_ENDING_PODS
        what = _wanted(waiting)
    elif isinstance(waiting, OnPausedNode):
        reason, what = Reason.NODE_PAUSED, f"{_PAUSED}: {waiting.why}"
    else:
        reason, what = Reason.WAITING_FOR_KUBELET, _overcommitment(waiting)
    return PodEvent(pod.namespace, pod.name, pod.uid, reason, what, is_warning=False, is_once=True)


def _wanted(queued: Queued) -> str:
    what = f"CPUs {queued.cpus}" if queued.cpus else "CPUs" if queued.moving else "memory"
    waits = f"it runs on shared CPUs and waits for {what}, which"
    parts = [
        f"{who}: {_names(queued.pod, pods)}"
        for who, pods in (
            ("ending pods still use", queued.ending),
            ("containers that are moved leave", queued.moving),
        )
        if pods
    ]
    return f"{waits} {'; and '.join(parts)}"


def _overcommitment(unaccepted: Unaccepted) -> str:
    asked, left = unaccepted.requests, unaccepted.left
    return (
        f"no scheduler has bound it, and its node has no room for it: it requests "
        f"{asked.cpu_millis}m CPU and {exact_bytes(asked.memory_bytes)} of memory; "
        f"{max(0, left.cpu_millis)}m, {format_bytes(max(0, left.memory_bytes), down=True)} and "
        f"room for {plural(max(0, left.pods), 'pod')} are left. It gets CPUs once the "
        "kubelet accepts it"
    )


def _chosen_without(resources: tuple[str, ...]) -> str:
    given = [one for one in resources if not is_driver(one)]
    claimed = [one for one in resources if is_driver(one)]
    why = []
    if given:
        named = join_texts(given, " and ", NAMED_LENGTH)
        why.append(f"its node has not reported which {named} it has")
    if claimed:
        named = join_texts(claimed, " and ", NAMED_LENGTH)
        why.append(f"no ResourceSlice has had its devices of {named}")
    return f"chosen without its devices: within {DEVICES_SECONDS:g} s {', and '.join(why)}"


def _given(entry: ContainerAssignment, topology: Topology | None) -> str:
    of_cpu = {cpu.id: cpu.numa_node for cpu in topology.cpus} if topology else {}
    near = CpuSet(of_cpu[cpu] for cpu in entry.cpus if cpu in of_cpu)
    given = f"container {entry.container}: CPUs {entry.cpus} of NUMA nodes {near}"
    if not entry.memory:
        return given
    apart = topology.mems_without_cpus & entry.mems if topology else None
    return (
        f"{given}, memory of NUMA nodes {entry.mems}{f' ({apart} without CPUs)' if apart else ''}"
    )


def _names(pod: PodView, others: Sequence[tuple[str, str]]) -> str:
    mine = [name for namespace, name in others if namespace == pod.namespace]
    if others and not mine:
        return f"{len(others)} of other namespaces"
    return first_texts(mine, NAMED_PODS, of=len(others))
