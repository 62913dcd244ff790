"""Which pods have what another pod needs, and which of them must end so that it fits.

Does no I/O.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.quantity import plural
from numapin_api.schema.plain_assignment import ContainerAssignment
from numapin_cli.advice.fate import Fate, all_cpus
from numapin_cli.advice.question import Question
from numapin_cli.advice.remedies.remedy import Remedy
from numapin_operator.nodes.picture import picture_of
from numapin_operator.placement import PodView

_MOST_SHOWN: Final = 3
"""The most remedies of this kind."""

_HUGEPAGES_NOTE: Final = "if its processes then free the huge pages that were given to them"


@dataclass(frozen=True, slots=True)
class Holder:
    """A pod that has CPUs or memory on the node.

    Attributes:
        uid: its UID.
        name: `namespace/name`.
        entries: what its containers have.
        pod: the pod; None if it is gone and its processes still run.
    """

    uid: str
    name: str
    entries: tuple[ContainerAssignment, ...]
    pod: PodView | None

    @property
    def cpus(self) -> CpuSet:
        """The CPUs that its containers have."""
        return all_cpus(self.entries)

    @property
    def mems(self) -> MemSet:
        """The NUMA nodes on which it has memory."""
        return MemSet.union(one.mems for one in self.entries)

    @property
    def memory_bytes(self) -> int:
        """The memory and huge pages that it has."""
        return sum(block.bytes for one in self.entries for block in one.memory)

    @property
    def is_static(self) -> bool:
        """Whether it is a static pod, or one of a DaemonSet; neither can be moved."""
        return self.pod is not None and self.pod.origin.kind in {"Node", "DaemonSet"}


def holders(question: Question) -> list[Holder]:
    """The node's other pods that have CPUs or memory, those with the most first."""
    pods = {pod.uid: pod for pod in picture_of(question.state, question.node).pods}
    found = [
        Holder(uid, f"{entries[0].namespace}/{entries[0].pod}", tuple(entries), pods.get(uid))
        for uid, entries in question.held_by_others().items()
    ]
    return sorted(found, key=lambda one: (-len(one.cpus), -one.memory_bytes, one.name))


def releases(question: Question, others: Sequence[str]) -> Iterator[Remedy]:
    """Single pods that must end so that the pod fits; if no single one is enough, a set of them.

    Args:
        question: the pod and the node.
        others: nodes to which a pod that must end might move.

    Raises:
        TooManyTriesError: enough has been tried.
    """
    found = holders(question)
    smallest = sorted(found, key=lambda one: (_priority(one), len(one.cpus), one.name))
    shown = 0
    for one in smallest:
        if remedy := _release(question, [one], others):
            yield remedy
            shown += 1
            if shown == _MOST_SHOWN:
                return
    if not shown and len(found) > 1:
        yield from _release_several(question, smallest)


def _priority(holder: Holder) -> tuple[bool, int]:
    return holder.is_static, holder.pod.origin.priority if holder.pod else 0


def _release_several(question: Question, found: Sequence[Holder]) -> Iterator[Remedy]:
    """The smallest set found: of pods on one NUMA node, or of all."""
    sets = [_enough(question, group) for group in _groups(found)]
    enough = [one for one in sets if one]
    for chosen in sorted(enough, key=lambda one: (len(one), sum(len(h.cpus) for h in one)))[:1]:
        if remedy := _release(question, chosen, ()):
            yield remedy


def _groups(found: Sequence[Holder]) -> Iterator[Sequence[Holder]]:
    """The holders bound to each NUMA node, then all holders."""
    for numa_node in sorted({node for one in found for node in one.mems}):
        yield [one for one in found if numa_node in one.mems]
    yield found


def _enough(question: Question, group: Sequence[Holder]) -> list[Holder]:
    """A minimal set of a group's pods without which the pod fits; empty if there is none."""
    chosen: list[Holder] = []
    for one in group:
        chosen.append(one)
        if _tried(question, chosen, frees_hugepages=True).fits:
            break
    else:
        return []
    for one in chosen[:-1]:
        fewer = [each for each in chosen if each is not one]
        if _tried(question, fewer, frees_hugepages=True).fits:
            chosen = fewer
    return chosen


def _tried(question: Question, ended: Iterable[Holder], *, frees_hugepages: bool) -> Fate:
    uids = {one.uid for one in ended}
    return question.plan("release", uids, frees_hugepages=frees_hugepages)


def _release(question: Question, ended: Sequence[Holder], others: Sequence[str]) -> Remedy | None:
    fate, note = _tried(question, ended, frees_hugepages=False), ""
    if not fate.fits:
        fate, note = _tried(question, ended, frees_hugepages=True), _HUGEPAGES_NOTE
    if not fate.fits:
        return None
    target = _new_home(question, ended[0], others) if len(ended) == 1 else ""
    change = {"pods": [one.name for one in ended], **({"moveTo": target} if target else {})}
    text = f"{_text(ended, target)}; then {_rest(question)}"
    return replace(Remedy.by("release", text, fate, change), note=note)


def _rest(question: Question) -> str:
    return "the resize takes effect" if question.stays else "create the pod again"


def _text(ended: Sequence[Holder], target: str) -> str:
    named = ", ".join(f"{one.name} ({_having(one)})" for one in ended)
    return f"move {named} to {target}, where it would fit" if target else f"end {named}"


def _having(holder: Holder) -> str:
    if holder.cpus:
        return f"{plural(len(holder.cpus), 'CPU')}: {holder.cpus}"
    return f"memory on NUMA {holder.mems}"


def _new_home(question: Question, holder: Holder, others: Sequence[str]) -> str:
    """Another node on which the holder's pod would fit; empty if none was found."""
    if holder.pod is None or holder.is_static or holder.pod.has_cpu_claims:
        return ""
    for node in others:
        moved = replace(question, node=node, pod=holder.pod, stays=False)
        if moved.plan("move").fits:
            return node
    return ""
