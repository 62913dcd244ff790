"""Init containers that run again, because the sandbox of their pod was made again.

That happens after a reboot of the node, a restart of the runtime, or when the sandbox has died. An
ordinary init container has given its CPUs back when it ended, except those that the containers
after it use. On a further run it shares these. As with the kubelet, that is what the containers
after it leave it, sidecars among them; a sidecar before it runs beside it, and shares nothing.
Source: Kubernetes v1.36, cpumanager static policy, `updateCPUsToReuse`.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.schema.plain_assignment import ContainerAssignment
from numapin_operator.placement.cpumanager.cpu_groups import CpuGroups
from numapin_operator.placement.masks import CpuMask
from numapin_operator.placement.requests import ContainerKind, PodView, exclusive_cpus
from numapin_operator.placement.resize.age import keep_oldest

Entries = Mapping[str, list[ContainerAssignment]]
"""The entries that stay, by pod."""


def with_run_again(
    cpu_groups: CpuGroups, kept: Entries, alive: Mapping[str, PodView]
) -> dict[str, list[ContainerAssignment]]:
    """The entries that stay, with those of init containers that run again.

    Such a container gets as many CPUs as it requests, or all that the containers after it have. If
    they have none it runs in the shared pool.
    """
    return {
        uid: [*_run_again(cpu_groups, alive[uid], listed), *listed] if uid in alive else listed
        for uid, listed in kept.items()
    }


def _run_again(
    cpu_groups: CpuGroups, pod: PodView, listed: Sequence[ContainerAssignment]
) -> Iterator[ContainerAssignment]:
    if pod.pod_level is not None or pod.terminal:
        return
    has = {one.container: one for one in listed}
    for at, one in enumerate(pod.containers):
        if one.kind is not ContainerKind.INIT or one.ended or one.name in has:
            continue
        if count := exclusive_cpus(pod, one):
            after = [has[later.name] for later in pod.containers[at + 1 :] if later.name in has]
            cpus, mems = _shared(cpu_groups, count, after)
            if cpus:
                yield _entry(listed[0], one.name, cpus, mems)


def _shared(
    cpu_groups: CpuGroups, count: int, after: Sequence[ContainerAssignment]
) -> tuple[CpuSet, MemSet]:
    """Some `count` of the CPUs of these containers, of the first ones first, and their memory."""
    cpus, mems = CpuSet(), MemSet()
    for one in after:
        own = one.cpus - one.moving.leaving if one.moving else one.cpus
        left = count - len(cpus)
        if one.claimed or not one.exclusive or left <= 0:
            continue
        if len(own) > left:
            mask = keep_oldest(cpu_groups, CpuMask(own.mask), (), left, whole_cores=False)
            own = CpuSet.from_mask(mask)
        cpus, mems = cpus | own, mems | one.mems
    return cpus, mems


def _entry(like: ContainerAssignment, name: str, cpus: CpuSet, mems: MemSet) -> ContainerAssignment:
    return ContainerAssignment(
        pod_uid=like.pod_uid,
        namespace=like.namespace,
        pod=like.pod,
        container=name,
        cpus=cpus,
        mems=mems,
        exclusive=True,
    )


def that_run_again(pod: PodView, entries: Sequence[ContainerAssignment]) -> frozenset[str]:
    """The names of init containers that have the CPUs of those after them, and nothing besides."""
    has = {one.container: one for one in entries}
    found = set[str]()
    for at, one in enumerate(pod.containers):
        if one.kind is not ContainerKind.INIT or one.ended or one.name not in has:
            continue
        after = (has[later.name].cpus for later in pod.containers[at + 1 :] if later.name in has)
        mine = has[one.name]
        if not mine.memory and mine.cpus <= CpuSet.union(after):
            found.add(one.name)
    return frozenset(found)


def as_ended(pod: PodView, names: Collection[str]) -> PodView:
    """The pod as if these containers had ended."""
    if not names:
        return pod
    changed = (replace(one, ended=True) if one.name in names else one for one in pod.containers)
    return replace(pod, containers=tuple(changed))
