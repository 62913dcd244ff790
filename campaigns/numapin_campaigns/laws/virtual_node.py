"""Invariants of a virtual node, and the list of their violations."""

from collections.abc import Iterator
from typing import Any

from numapin_api.cpuset import CpuSet
from numapin_api.nodeassignment import ContainerAssignment, NodeAssignment
from numapin_lab.vm.running_lab import Group, KernelState, RunningVmLab, Task, container_of


def problems(lab: RunningVmLab) -> list[str]:
    """Differences between NodeAssignment, cgroups and processes; empty if all is in force."""
    assignment = lab.assignment()
    if assignment is None or assignment.status is None or not lab.in_force():
        return ["the NodeAssignment is not in force"]
    state, pods = lab.look(), lab.cluster.pods()
    ids = dict(_container_ids(pods))
    found = [
        *_reported(assignment),
        *_unlike_asked(state),
        *_not_on_the_shared_pool(state, assignment, set(ids.values())),
    ]
    for one in assignment.spec.containers:
        wanted = (_cpus(one, assignment), str(one.mems))
        if one.key not in ids:
            found.append(f"{one.pod}: {one.container} does not run")
            continue
        group, tasks = state.of(ids[one.key])
        found += [f"{one.pod}: {problem}" for problem in _elsewhere(group, tasks, *wanted)]
    return found


def _container_ids(pods: list[dict[str, Any]]) -> Iterator[tuple[tuple[str, str], str]]:
    for pod in pods:
        for one in pod["status"].get("containerStatuses", ()):
            if identity := one.get("containerID", "").partition("://")[2]:
                yield (pod["metadata"]["uid"], one["name"]), identity


def _reported(assignment: NodeAssignment) -> Iterator[str]:
    assert assignment.status is not None
    wanted = {_entry(one, assignment) for one in assignment.spec.containers}
    reported = {
        (one.pod_uid, one.container, str(one.cpus), str(one.mems), one.exclusive)
        for one in assignment.status.containers
    }
    if reported != wanted:
        yield f"the status reports {sorted(reported)}, the spec wants {sorted(wanted)}"


def _entry(one: ContainerAssignment, assignment: NodeAssignment) -> tuple[str, str, str, str, bool]:
    return (one.pod_uid, one.container, _cpus(one, assignment), str(one.mems), one.exclusive)


def _cpus(one: ContainerAssignment, assignment: NodeAssignment) -> str:
    """Its CPUs; those of the shared pool if only its memory is bound."""
    pools = assignment.spec.pools
    return str(one.cpus or (pools.shared if pools else one.cpus))


def _unlike_asked(state: KernelState) -> Iterator[str]:
    """Cgroups with more than they asked for, which the kernel gives if all of it is offline."""
    for path, group in state.groups.items():
        if group.cpus and not CpuSet.parse(group.cpus_effective) <= CpuSet.parse(group.cpus):
            yield f"{path}: asked for CPUs {group.cpus}, has {group.cpus_effective}"
        if group.mems not in {"", group.mems_effective}:
            yield f"{path}: asked for NUMA nodes {group.mems}, has {group.mems_effective}"


def _elsewhere(group: Group, tasks: list[Task], cpus: str, mems: str) -> Iterator[str]:
    """Differences from these sets; a cgroup that asked for nothing has what its parent has."""
    effective = (group.cpus_effective, group.mems_effective)
    for asked in ((group.cpus or effective[0], group.mems or effective[1]), effective):
        if asked != (cpus, mems):
            yield f"its cgroup is on {asked}, not on {cpus} and {mems}"
    if not tasks or set(tasks) != {Task(cpus, mems)}:
        yield f"its processes are on {tasks}, not on {cpus} and {mems}"


def _not_on_the_shared_pool(
    state: KernelState, assignment: NodeAssignment, containers: set[str]
) -> Iterator[str]:
    """Processes of shared containers and sandboxes that are not on the shared pool."""
    pools = assignment.status.pools if assignment.status else None
    if pools is None:
        return
    for path, group in state.groups.items():
        exclusive = CpuSet.parse(group.cpus_effective) <= pools.exclusive
        if container_of(path) in containers and exclusive:
            continue
        for pid in group.pids:
            if pid in state.tasks and state.tasks[pid].cpus != str(pools.shared):
                yield f"{path}, process {pid}: on {state.tasks[pid].cpus}, not on {pools.shared}"
