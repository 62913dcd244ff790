"""Read from the cache what a decision about one node depends on. Does no I/O."""

from collections.abc import Sequence
from dataclasses import replace

from numapin_operator.nodes.decide import NodePicture
from numapin_operator.observe.assignments.view import AssignmentView
from numapin_operator.observe.cache import ClusterState
from numapin_operator.observe.pods.mirror_pods import with_static_uids
from numapin_operator.observe.records import PolicyView
from numapin_operator.placement import PodView, with_claimed, with_named
from numapin_operator.policies.selection import mark_selected


def picture_of(
    state: ClusterState,
    name: str,
    late: Sequence[PodView] = (),
    governing: PolicyView | None = None,
) -> NodePicture:
    """Everything that a decision about a node depends on.

    Args:
        state: the cluster as observed.
        name: the node's name.
        late: pods of the node that exist although their watch has not delivered them yet.
        governing: an older state of the governing policy, by which the node is planned; None for
            the newest.
    """
    ranked = state.policies_of(name)
    if governing is not None:
        ranked = (governing, *ranked[1:])
    pods = pods_on(state, name, late)
    known = {pod.uid for pod in pods} if state.held.pods else frozenset[str]()
    wishes = tuple(one.pod for one in state.held.wishes_for(name) if one.uid not in known)
    if ranked:
        pods = mark_selected(ranked[0].spec.pods, pods, state.namespaces)
        wishes = mark_selected(ranked[0].spec.pods, wishes, state.namespaces)
    return NodePicture(
        name,
        state.nodes.get(name),
        ranked,
        with_claimed_devices(_with_devices(state.assignments.get(name), pods), pods),
        pods,
        release_delay=state.release_delay_of(name),
        lost=state.lost.get(name),
        as_lines=state.takes_lines(name),
        wishes=wishes,
    )


def _with_devices(
    assignment: AssignmentView | None, pods: Sequence[PodView]
) -> AssignmentView | None:
    """The assignment, whose node may report devices of pods that only we can name."""
    if assignment is None or (devices := assignment.status.devices) is None:
        return assignment
    if not devices.unnamed:
        return assignment
    status = replace(assignment.status, devices=with_named(devices, pods))
    return replace(assignment, status=status)


def with_claimed_devices(
    assignment: AssignmentView | None, pods: Sequence[PodView]
) -> AssignmentView | None:
    """The assignment, with the devices of pods' ResourceClaims beside those that its node reports.

    Args:
        assignment: the assignment, without them so far.
        pods: the pods of its node, with their claims.
    """
    if assignment is None or assignment.topology is None:
        return assignment
    before = assignment.status.devices
    devices = with_claimed(before, pods, assignment.topology)
    if devices is before:
        return assignment
    return replace(assignment, status=replace(assignment.status, devices=devices))


def pods_on(state: ClusterState, name: str, late: Sequence[PodView] = ()) -> tuple[PodView, ...]:
    """The pods bound to a node, under the UIDs that their cgroups carry.

    With those that wait for this node and have a place there.
    """
    pods = tuple(state.pods_on(name))
    observed = {pod.uid for pod in pods}
    pods += tuple(pod for pod in late if pod.uid not in observed)
    known = state.assignments.get(name)
    if state.held.pods and known is not None:
        held = state.held.with_place(name, known.spec.containers)
        pods += tuple(one.pod for uid, one in held.items() if uid not in observed)
    node = state.nodes.get(name)
    return pods if node is None else with_static_uids(pods, node.uid)
