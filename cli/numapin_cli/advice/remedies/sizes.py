"""Other requests with which a pod would fit.

Does no I/O.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain
from typing import Final

from numapin_api.conditions.reasons import Reason
from numapin_api.quantity import format_bytes, plural
from numapin_cli.advice.fate import Fate
from numapin_cli.advice.question import Question
from numapin_cli.advice.remedies.remedy import Remedy
from numapin_operator.placement import (
    HUGEPAGES_PREFIX,
    MEMORY,
    Amounts,
    ContainerKind,
    ContainerView,
    PodView,
    exclusive_cpus,
)

_MORE: Final = 8
"""How many more CPUs are tried: alignment may allow a larger request where it refuses this."""

_MIB: Final = 1 << 20
_SMALL_CPU_MILLIS: Final = 100
_SMALL_MEMORY: Final = 64 * _MIB
"""What a container without a request is given."""

_NEEDS_MEMORY: Final = frozenset({Reason.NOT_ENOUGH_MEMORY, Reason.TOPOLOGY_AFFINITY_ERROR})
_NEEDS_ALIGNMENT: Final = frozenset({Reason.SMT_ALIGNMENT_ERROR, Reason.TOPOLOGY_AFFINITY_ERROR})


def other_sizes(question: Question, refused: Fate) -> Iterator[Remedy]:
    """The largest smaller number of CPUs, or the smallest larger one, and the most memory.

    Raises:
        TooManyTriesError: enough has been tried.
    """
    if refused.reason == Reason.EMPTY_POD_SHARED_POOL_ERROR:
        yield from _more_for_the_pod(question)
        return
    found = False
    for container in _concerned(question.pod, refused):
        sizes = [_cpus(question, container, refused)]
        sizes += [_memory(question, container)] if refused.reason in _NEEDS_MEMORY else []
        for remedy in chain.from_iterable(sizes):
            found = True
            yield remedy
    if not found and not question.stays:
        yield from _all_smaller(question)


def guaranteed_sizes(question: Question) -> Iterator[Remedy]:
    """The mildest change of requests and limits with which a pod that shares gets its own CPUs.

    Limits equal requests; containers without a request get a small one; and if that is not enough,
    the CPUs of those that ask for 1 or more are whole, or of all that ask if each asks for less.

    Raises:
        TooManyTriesError: enough has been tried.
    """
    before = question.pod
    for whole_cpus in (False, True):
        fate = _tried(question, after := _guaranteed(before, whole_cpus=whole_cpus))
        if fate.fits:
            cpus = {one.name: one.cpu_millis / 1000 for one in after.containers}
            amounts = ", ".join(_guaranteed_amounts(before, after))
            how = f"limits equal to requests{' and whole CPUs' if whole_cpus else ''} ({amounts})"
            change = {"guaranteed": True, "cpus": cpus}
            yield Remedy.by("size", f"{_verb(question)} {how}", fate, change)
            return


def _guaranteed_amounts(before: PodView, after: PodView) -> Iterator[str]:
    for one, other in zip(before.containers, after.containers, strict=True):
        memory = f" and {format_bytes(_SMALL_MEMORY)}" if one.memory != other.memory else ""
        yield f"{other.name} {other.cpu_millis / 1000:g}{memory}"


def _guaranteed(pod: PodView, *, whole_cpus: bool) -> PodView:
    """The pod with limits equal to requests, none of which is missing."""
    least = min(1000, max((one.cpu_millis for one in pod.containers), default=0)) or 1

    def rounded(cpu_millis: int) -> int:
        return -(-cpu_millis // 1000) * 1000 if whole_cpus and cpu_millis >= least else cpu_millis

    if pod.pod_level is not None:
        whole = replace(pod.pod_level, cpu_millis=rounded(pod.pod_level.cpu_millis))
        return replace(pod, qos="Guaranteed", pod_level=whole)
    containers = tuple(
        replace(
            one,
            cpu_millis=rounded(one.cpu_millis) or _SMALL_CPU_MILLIS,
            memory=_with_memory(one.memory),
            matched=True,
        )
        for one in pod.containers
    )
    return replace(pod, qos="Guaranteed", containers=containers)


def _with_memory(memory: Amounts) -> Amounts:
    """The amounts with a small one of memory if there is none."""
    there = dict(memory)
    return tuple(sorted((there | {MEMORY: there.get(MEMORY) or _SMALL_MEMORY}).items()))


def _more_for_the_pod(question: Question) -> Iterator[Remedy]:
    """More CPUs in spec.resources of the pod, so that its other containers get some."""
    whole = question.pod.pod_level
    assert whole is not None, "only pods with resources of their own are refused so"
    for added in range(1, _MORE + 1):
        cpu_millis = whole.cpu_millis + added * 1000
        larger = replace(question.pod, pod_level=replace(whole, cpu_millis=cpu_millis))
        fate = _tried(question, larger)
        if fate.fits:
            text = f"{_verb(question)} {cpu_millis // 1000} CPUs in spec.resources"
            yield Remedy.by("size", text, fate, {"podCPUs": cpu_millis // 1000})
            return


def _all_smaller(question: Question) -> Iterator[Remedy]:
    """All containers smaller by the same percentage, if changing one alone is not enough."""
    for percent in range(90, 0, -10):
        pod = scaled(question.pod, percent)
        if pod == question.pod:
            continue
        fate = _tried(question, pod)
        if fate.fits:
            text = f"{_verb(question)} {_sizes(question.pod, pod)}"
            yield Remedy.by("size", text, fate, {"percent": percent})
            return


def scaled(pod: PodView, percent: int) -> PodView:
    """The pod with a percentage of its CPUs and memory, in whole CPUs, pages and MiB."""
    containers = tuple(
        replace(one, cpu_millis=_part(one.cpu_millis, percent), memory=_parts(one.memory, percent))
        for one in pod.containers
    )
    whole = pod.pod_level
    if whole is not None:
        cpu_millis = _part(whole.cpu_millis, percent)
        whole = replace(whole, cpu_millis=cpu_millis, memory=_parts(whole.memory, percent))
    return replace(pod, containers=containers, pod_level=whole)


def _part(cpu_millis: int, percent: int) -> int:
    """A percentage of a whole number of CPUs, at least 1; a fraction of a CPU stays as it is."""
    if cpu_millis % 1000 or not cpu_millis:
        return cpu_millis
    return max(1, cpu_millis // 1000 * percent // 100) * 1000


def _parts(memory: Amounts, percent: int) -> Amounts:
    return tuple(
        (name, max(1, size * percent // 100 // _unit(name)) * _unit(name)) for name, size in memory
    )


def _sizes(before: PodView, after: PodView) -> str:
    """The sizes that differ, for people."""
    changes = []
    for one, other in zip(before.containers, after.containers, strict=True):
        if one.cpu_millis != other.cpu_millis:
            changes.append(f"{plural(other.whole_cpus, 'CPU')} for {one.name}")
        for (name, size), (_, smaller) in zip(one.memory, other.memory, strict=True):
            if size != smaller:
                changes.append(f"{format_bytes(smaller)} of {name} for {one.name}")
    if before.pod_level != after.pod_level and after.pod_level is not None:
        changes.append(f"{after.pod_level.cpu_millis // 1000} CPUs in spec.resources")
        changes += [f"{format_bytes(n)} of {name} there" for name, n in after.pod_level.memory]
    return ", ".join(changes)


def _concerned(pod: PodView, refused: Fate) -> list[ContainerView]:
    """The containers whose size matters: that which was refused, or all of the pod."""
    asking = [one for one in pod.containers if exclusive_cpus(pod, one) or one.memory]
    return [one for one in asking if one.name == refused.container] or asking


def _cpus(question: Question, container: ContainerView, refused: Fate) -> Iterator[Remedy]:
    wanted = exclusive_cpus(question.pod, container)
    for count in range(wanted - 1, _cpus_now(question, container.name), -1):
        fate = _tried(question, with_cpus(question.pod, container.name, count))
        if fate.fits:
            yield _cpu_remedy(question, container.name, count, fate)
            break
    if not wanted or refused.reason not in _NEEDS_ALIGNMENT:
        return
    for count in range(wanted + 1, wanted + _MORE + 1):
        fate = _tried(question, with_cpus(question.pod, container.name, count))
        if fate.fits:
            yield _cpu_remedy(question, container.name, count, fate)
            break


def _cpu_remedy(question: Question, name: str, count: int, fate: Fate) -> Remedy:
    (container,) = (one for one in question.pod.containers if one.name == name)
    wanted = exclusive_cpus(question.pod, container)
    text = f"{_verb(question)} {plural(count, 'CPU')} for {name} instead of {wanted}"
    return Remedy.by("size", text, fate, {"container": name, "cpus": count})


def _verb(question: Question) -> str:
    return "resize the pod to" if question.stays else "create the pod with"


def _cpus_now(question: Question, name: str) -> int:
    """How many CPUs a container has that stays; fewer are no help. 0 if it is created again."""
    entry = question.entry(name)
    return len(entry.cpus) if entry is not None and question.stays else 0


def _memory_now(question: Question, name: str, resource: str) -> int:
    """The same for its memory, in bytes."""
    entry = question.entry(name)
    blocks = entry.memory if entry is not None and question.stays else ()
    return sum(one.bytes for one in blocks if one.resource == resource)


def _memory(question: Question, container: ContainerView) -> Iterator[Remedy]:
    for resource, wanted in container.memory:
        unit = _unit(resource)

        def fits(units: int, resource: str = resource, unit: int = unit) -> Fate:
            smaller = with_memory(question.pod, container.name, resource, units * unit)
            return _tried(question, smaller)

        if found := _most(fits, -(-wanted // unit) - 1):
            units, fate = found
            if units * unit <= _memory_now(question, container.name, resource):
                continue
            text = (
                f"{_verb(question)} {format_bytes(units * unit)} of {resource} for"
                f" {container.name} instead of {format_bytes(wanted)}"
            )
            change = {"container": container.name, "resource": resource, "bytes": units * unit}
            yield Remedy.by("size", text, fate, change)


def _most(fits: Callable[[int], Fate], most: int) -> tuple[int, Fate] | None:
    """The largest number from 1 that was found to fit; None if 1 does not."""
    if most < 1 or not (best := fits(1)).fits:
        return None
    low, high = 1, most
    while low < high:
        middle = (low + high + 1) // 2
        fate = fits(middle)
        if fate.fits:
            low, best = middle, fate
        else:
            high = middle - 1
    return low, best


def _unit(resource: str) -> int:
    """The steps in which a size is tried: pages, or 1 MiB."""
    if resource.startswith(HUGEPAGES_PREFIX):
        number, suffix = resource.removeprefix(HUGEPAGES_PREFIX)[:-2], resource[-2:]
        return int(number) << {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40}[suffix]
    assert resource == MEMORY, resource
    return _MIB


def _tried(question: Question, pod: PodView) -> Fate:
    return replace(question, pod=pod).plan("size")


def with_cpus(pod: PodView, name: str, count: int) -> PodView:
    """The pod with another number of CPUs for a container, and as many more or fewer in all."""
    (before,) = (one for one in pod.containers if one.name == name)
    containers = tuple(
        replace(one, cpu_millis=count * 1000) if one is before else one for one in pod.containers
    )
    whole = pod.pod_level
    if whole is not None and before.kind is not ContainerKind.INIT:
        added = count * 1000 - before.cpu_millis
        whole = replace(whole, cpu_millis=max(0, whole.cpu_millis + added))
    return replace(pod, containers=containers, pod_level=whole)


def with_memory(pod: PodView, name: str, resource: str, size_bytes: int) -> PodView:
    """The pod with another size of memory or huge pages for a container, and in all."""
    (before,) = (one for one in pod.containers if one.name == name)
    memory = tuple((key, size_bytes if key == resource else size) for key, size in before.memory)
    containers = tuple(
        replace(one, memory=memory) if one is before else one for one in pod.containers
    )
    whole = pod.pod_level
    if whole is not None and before.kind is not ContainerKind.INIT:
        added = size_bytes - dict(before.memory)[resource]
        sizes = tuple((k, max(0, v + added) if k == resource else v) for k, v in whole.memory)
        whole = replace(whole, memory=sizes)
    return replace(pod, containers=containers, pod_level=whole)
