"""The entries of containers to which a DRA driver has given CPUs. Does no I/O."""

from collections.abc import Iterable, Mapping
from itertools import chain

from numapin_api.cpuset import CpuSet
from numapin_api.schema.plain_assignment import ContainerAssignment
from numapin_operator.placement.requests import PodView


def with_claimed(
    kept: Mapping[str, list[ContainerAssignment]],
    pods: Iterable[PodView],
    claims: Mapping[str, CpuSet],
    shared: CpuSet,
) -> dict[str, list[ContainerAssignment]]:
    """The entries that stay, with those of claimed containers as the node reports them now.

    The driver does not know of numapin. A CPU that a container has from numapin stays with it, and
    the last CPU of the shared pool is given to no claim.

    A container whose claims are not reported keeps what it had. A pod's claim lasts as long as the
    pod, so that the enforcer could not read it, or had no room for it.

    Args:
        kept: the entries that stay, by pod; those of claimed containers are replaced.
        pods: the pods that have not ended, in the order of placement.
        claims: the UID of each claim to its CPUs.
        shared: the shared pool of a node without pods.
    """
    known = [pod for pod in pods if not pod.claims_unknown]
    renewed = {pod.uid for pod in known}
    earlier = {
        (uid, one.container): one.cpus
        for uid, listed in kept.items()
        for one in listed
        if one.claimed
    }
    entries = {
        uid: [one for one in listed if not (one.claimed and uid in renewed)]
        for uid, listed in kept.items()
    }
    taken = CpuSet.union(one.cpus for listed in entries.values() for one in listed)
    for pod in known:
        for container in pod.containers:
            if not container.cpu_claims or container.ended:
                continue
            cpus = CpuSet.union(claims.get(uid, CpuSet()) for uid in container.cpu_claims)
            cpus = (cpus or earlier.get((pod.uid, container.name), CpuSet())) - taken
            if not cpus or not shared - taken - cpus:
                continue
            taken |= cpus
            entries.setdefault(pod.uid, []).append(
                ContainerAssignment(
                    pod_uid=pod.uid,
                    namespace=pod.namespace,
                    pod=pod.name,
                    container=container.name,
                    cpus=cpus,
                    exclusive=True,
                    claimed=True,
                )
            )
    return {uid: listed for uid, listed in entries.items() if listed}


def claimed_cpus(kept: Mapping[str, list[ContainerAssignment]]) -> CpuSet:
    """All CPUs of claimed containers."""
    return CpuSet.union(one.cpus for listed in kept.values() for one in listed if one.claimed)


def in_order(
    kept: Mapping[str, list[ContainerAssignment]], new: Iterable[ContainerAssignment]
) -> tuple[ContainerAssignment, ...]:
    """All entries in the order that the next plan keeps: by pod, those of claimed containers last.

    A pod may have a claimed container before its other containers are placed.
    """
    listed_new = list(new)
    known = tuple(chain.from_iterable(kept.values()))
    if not any(one.claimed for one in known) and not any(one.pod_uid in kept for one in listed_new):
        return (*known, *listed_new)
    of_pod = {uid: list(listed) for uid, listed in kept.items()}
    for entry in listed_new:
        of_pod.setdefault(entry.pod_uid, []).append(entry)
    return tuple(
        entry
        for listed in of_pod.values()
        for claimed in (False, True)
        for entry in listed
        if bool(entry.claimed) is claimed
    )
