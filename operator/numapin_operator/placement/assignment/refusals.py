"""Which earlier refusals stand, and in which order refusals are listed."""

from collections.abc import Iterable, Iterator, Mapping

from numapin_api.conditions.reasons import Reason
from numapin_api.quantity import exact_bytes
from numapin_api.schema.plain_assignment import ContainerAssignment, NodeAssignmentSpec, Refusal
from numapin_operator.placement.requests import ContainerView, PodView


def standing(
    previous: NodeAssignmentSpec | None, alive: Mapping[str, PodView]
) -> Iterator[tuple[str, Refusal]]:
    """The refusals that stand, by pod.

    A pod whose spec was edited, as by a resize, is tried again at each plan, and an invalid pod
    once it has become valid.
    """
    for refusal in previous.refused if previous else ():
        pod = alive.get(refusal.pod_uid)
        if pod is None or (pod.edited and not pod.problem):
            continue
        if pod.problem or refusal.reason != Reason.INVALID_POD:
            yield refusal.pod_uid, refusal


def in_earlier_order(
    refused: Mapping[str, Refusal], previous: NodeAssignmentSpec | None
) -> Iterator[Refusal]:
    """All refusals: first those of pods that were refused before, in the same order."""
    known = dict.fromkeys(one.pod_uid for one in previous.refused) if previous else {}
    yield from (refused[uid] for uid in known if uid in refused)
    yield from (one for uid, one in refused.items() if uid not in known)


def steady(refused: Iterable[Refusal], earlier: Iterable[Refusal] | None) -> tuple[Refusal, ...]:
    """The refusals, each as it was put earlier if the same is requested still.

    So a plan that releases nothing changes no message. Another container of the pod may be the
    first that finds no CPU when a younger pod has been placed meanwhile.
    """
    known = {_subject(one): one for one in earlier or ()}
    return tuple(known.get(_subject(one), one) for one in refused)


def releases(previous: NodeAssignmentSpec | None, entries: Iterable[ContainerAssignment]) -> bool:
    """Whether a container has fewer CPUs or less memory than in the previous assignment."""
    now = {one.key: one for one in entries}
    for had in previous.containers if previous else ():
        has = now.get(had.key)
        if has is not had and (has is None or _has_less(has, had)):
            return True
    return False


def _has_less(has: ContainerAssignment, had: ContainerAssignment) -> bool:
    return bool(had.cpus - has.cpus) or _bytes(has) < _bytes(had)


def _bytes(entry: ContainerAssignment) -> int:
    return sum(one.bytes for one in entry.memory)


def requested_of(pod: PodView) -> str | None:
    """What a pod that was edited requests; None for any other."""
    if not pod.edited:
        return None
    return ", ".join(f"{one.name}: {one.cpu_millis}m CPU{_amounts(one)}" for one in pod.containers)


def _amounts(container: ContainerView) -> str:
    return "".join(f" + {exact_bytes(size)} {name}" for name, size in container.memory)


def _subject(refusal: Refusal) -> tuple[object, ...]:
    return refusal.pod_uid, refusal.requested
