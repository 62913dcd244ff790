"""Random specs: containers placed anew, and those of an earlier spec resized."""

from collections.abc import Collection
from dataclasses import replace
from random import Random

from numapin_api.cpuset import CpuSet
from numapin_campaigns.histories.actions import SANDBOX, Assign, History, Own


def placed(pick: Random, history: History, running: Collection[tuple[str, str]]) -> Assign:
    """Some of the containers that run get CPUs of their own, or NUMA nodes."""
    order = pick.sample(range(history.cpus), history.cpus)
    shared_count = pick.randint(1, max(1, history.cpus // 2))
    shared, free = order[:shared_count], order[shared_count:]
    listed: list[Own] = []
    for pod, name in pick.sample(sorted(running), len(running)):
        take = pick.choice((0, 1, 1, 2))
        own, free = CpuSet(free[:take]), free[take:]
        mems = pick.choice(("", "0", "1")) if history.numa_nodes > 1 else ""
        if name != SANDBOX and (own or mems):
            listed.append(Own(pod, name, str(own), mems))
        elif own:
            free = [*own, *free]
    return Assign(str(CpuSet(shared) | CpuSet(free)), tuple(listed))


def resized(pick: Random, before: Assign) -> Assign:
    """Containers give back some of their CPUs or all, and others get these or shared ones."""
    shared, left = list(CpuSet.parse(before.shared)), list[Own]()
    for own in before.containers:
        cpus = list(CpuSet.parse(own.cpus))
        kept = pick.choice((len(cpus), len(cpus), pick.randint(0, len(cpus))))
        shared += cpus[kept:]
        left.append(replace(own, cpus=str(CpuSet(cpus[:kept]))))
    pick.shuffle(shared)
    listed: list[Own] = []
    for own in left:
        count = min(pick.choice((0, 0, 1, 2)), len(shared) - 1)
        more, shared = shared[:count], shared[count:]
        grown = replace(own, cpus=str(CpuSet.parse(own.cpus) | CpuSet(more)))
        if grown.cpus or grown.mems:
            listed.append(grown)
    return Assign(str(CpuSet(shared)), tuple(listed))
