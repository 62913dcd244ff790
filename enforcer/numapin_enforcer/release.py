"""`--release`: gives every cgroup what its parent has, once, and logs what changed."""

import logging
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from numapin_api.cpuset import CpuSet
from numapin_api.text import first_texts
from numapin_api.topology import Topology
from numapin_daemon.clock import Clock
from numapin_enforcer.assignment.copy_file import FILE_NAME
from numapin_enforcer.cfs_quota.lifted import LiftedQuotas
from numapin_enforcer.cgroups.apply import apply
from numapin_enforcer.cgroups.kubepods.finder import KubepodsFinder, PodTree
from numapin_enforcer.cgroups.memory.binding import SavedMems
from numapin_enforcer.cgroups.naming import CgroupNaming, Driver, Kind
from numapin_enforcer.cgroups.tree import Tree, Version
from numapin_enforcer.cgroups.write import Quota
from numapin_enforcer.goals import ReleaseGoal
from numapin_enforcer.host.cgroup_sets import KeepOff
from numapin_enforcer.host.follower import pod_trees
from numapin_enforcer.host.keeper import HostKeeper
from numapin_enforcer.interrupts.files import InterruptsError
from numapin_enforcer.interrupts.follower import limits_of
from numapin_enforcer.interrupts.saved_masks import SavedMasks
from numapin_enforcer.interrupts.updater import SHOWN, Host
from numapin_enforcer.node.lock import NodeLock
from numapin_enforcer.node.lock_keeper import acquire_from_standby
from numapin_enforcer.partitions.files import KernelPartitions
from numapin_enforcer.partitions.partitioning import end_all
from numapin_enforcer.partitions.saved import FoundPartitions
from numapin_enforcer.plan.cpu_index import CpuIndex
from numapin_enforcer.reconciler import Reconciler
from numapin_enforcer.resctrl.files import ResctrlError
from numapin_enforcer.resctrl.saved import SavedRecord
from numapin_enforcer.resctrl.updater import Host as Resctrl
from numapin_enforcer.resctrl.values import NOTHING
from numapin_enforcer.runtime.interface import (
    ContainerResources,
    ContainerRuntime,
    CriError,
    CriNotFoundError,
)
from numapin_enforcer.status.in_force.exclusivity import withheld
from numapin_enforcer.systemd.interface import (
    ServiceManager,
    SliceSets,
    SystemdAbsentError,
    SystemdError,
)
from numapin_enforcer.systemd.slices import qos_slices

LOG: Final = logging.getLogger(__name__)


class ReleaseError(Exception):
    """Not everything could be released; the message says what is left."""


async def lock_for_release(lock: NodeLock, clock: Clock | None = None) -> None:
    """Make sure that no enforcer reverts the release.

    Raises:
        ReleaseError: an enforcer runs.
    """
    with suppress(FileNotFoundError):  # no enforcer has run here
        if not await acquire_from_standby(lock, clock):
            why = f"an enforcer runs on this node (it has {lock.path}) and would undo it"
            raise ReleaseError(f"nothing was released: {why}; stop it first")


async def release_all(
    topology: Topology,
    kubepods: KubepodsFinder,
    runtime: ContainerRuntime,
    connect: Callable[[], ServiceManager],
    state_dir: Path,
) -> None:
    """Delete the local copy, release all cgroups, and reset runtime and systemd.

    The copy is deleted in any case: a later installation must not enforce it.

    Raises:
        ReleaseError: a cgroup is still restricted, or the runtime or systemd may restrict it again.
        CgroupError: the tree could not be read.
    """
    (state_dir / FILE_NAME).unlink(missing_ok=True)
    pods = kubepods.open()
    if pods is None:
        LOG.info("there is nothing to release", extra={"why": kubepods.problem})
        return
    before = pods.files.read()
    found = SavedMems(state_dir)
    left = _end_partitions(pods, before, state_dir)
    left += _release(topology, pods, found)
    quotas = LiftedQuotas(pods.files, pods.naming.root, state_dir)
    lifted = quotas.lifted
    left += [str(failure.error) for failure in quotas.update(()).failed]
    after = pods.files.read()
    released = _released(before, after, lifted, quotas.restored)
    for path, resources in released.items():
        left += await _update_runtime(pods, runtime, path, resources)
    left += await _reset_slices(pods, after, connect)
    left += _release(topology, pods, found)  # what either wrote before it was told
    if left:
        raise ReleaseError(f"not everything was released: {'; '.join(dict.fromkeys(left))}")
    LOG.info("everything was released", extra={"cgroups": len(released)})


async def release_host(keeper: HostKeeper, kubepods: KubepodsFinder) -> None:
    """Give the cgroups that hold no pods what they had before the enforcer set them.

    Raises:
        ReleaseError: one of them has not got it.
        CgroupError: they could not be read.
    """
    if not (before := keeper.found.cgroups):
        return
    pods = kubepods.open()
    naming = pods.naming if pods is not None else CgroupNaming(Driver.SYSTEMD)
    try:
        look = await keeper.bring(KeepOff(pod_trees=pod_trees(naming)))
    finally:
        await keeper.close()
    if look.problems:
        raise ReleaseError(f"not everything was released: {'; '.join(look.problems)}")
    LOG.info("the cgroups of the host were released", extra={"cgroups": len(before)})


def restore_interrupts(host: Host, topology: Topology) -> None:
    """Give interrupts the CPUs that they had; nothing is read if they were left alone.

    Raises:
        ReleaseError: some do not have them.
    """
    if not SavedMasks.exists(host.state_dir):
        return
    keeper = host.keeper()
    try:
        outcome = keeper.look(limits_of(CpuSet(), CpuSet(), topology), now_seconds=0.0)
    except (InterruptsError, OSError) as error:
        raise ReleaseError(f"interrupts were not released: {error}") from error
    if keeper.not_restored:
        left = first_texts(keeper.not_restored, SHOWN, "; ")
        raise ReleaseError(f"not all interrupts were released: {left}")
    LOG.info("interrupts were released", extra={"masks": outcome.written})


def restore_caches(host: Resctrl) -> None:
    """Give caches and memory bandwidth back to all CPUs; nothing is read if they were left alone.

    Raises:
        ReleaseError: resctrl is not as it was found.
    """
    if not SavedRecord.exists(host.state_dir):
        return
    try:
        outcome = host.keeper().look(NOTHING)
    except (ResctrlError, OSError) as error:
        raise ReleaseError(f"caches were not released: {error}") from error
    if outcome.problems:
        left = first_texts(outcome.problems, SHOWN, "; ")
        raise ReleaseError(f"not all caches were released: {left}")
    LOG.info("caches were released", extra={"lines": outcome.written})


def _end_partitions(pods: PodTree, tree: Tree, state_dir: Path) -> list[str]:
    """Make every cgroup a member again, and restore what others had set; returns what is left."""
    if tree.version is Version.V1:
        return []
    files, found = KernelPartitions(pods.mounts.cpuset), FoundPartitions(state_dir)
    return end_all(files, tree.cgroups, found)


def _release(topology: Topology, pods: PodTree, found: SavedMems) -> list[str]:
    """Give every cgroup the CPUs of kubepods and its earlier NUMA nodes; returns what is left."""
    reconciler = Reconciler(pods.files, pods.snapshot, pods.naming)
    done = reconciler.converge(ReleaseGoal(topology, found.mems), full_resync=True)
    moved = apply(done.moves, pods.files)
    left = [str(failure.error) for failure in (*done.failures, *moved.failed)]
    if done.tree is not None and not (left or done.complete):
        left += [str(lack) for lack in withheld(CpuIndex(done.tree, done.desired))]
    if not left:
        with suppress(OSError):  # restoring it again changes nothing
            found.drop(found.mems.keys())
    return left if done.stable else [*left, "cgroups kept changing while they were released"]


def _released(
    before: Tree, after: Tree, lifted: Collection[str], restored: Mapping[str, Quota]
) -> dict[str, ContainerResources]:
    """What each cgroup has whose CPUs or CFS limit changed; logs each.

    The runtime has the limit of a container that is `lifted`, unless an earlier version of numapin
    has removed it there too. So it is sent what is `restored`, and no limit that others have set.
    """
    released = {}
    for path, was in before.cgroups.items():
        has = after.cgroups.get(path)
        if has is None or (path not in lifted and has.effective_cpus == was.effective_cpus):
            continue
        extra = {"cgroup": path, "had": was.effective_cpus, "has": has.effective_cpus}
        LOG.info("released", extra=extra)
        quota_us = restored[path].quota_us if path in restored else None
        released[path] = ContainerResources(has.effective_cpus, has.effective_mems, quota_us or 0)
    return released


async def _reset_slices(
    pods: PodTree, tree: Tree, connect: Callable[[], ServiceManager]
) -> list[str]:
    """Reset the cpusets of the kubelet's slices in systemd; returns what could not be done."""
    paths = tuple(qos_slices(tree, pods.naming))
    if not paths:
        return []
    systemd = connect()
    try:
        for path in paths:
            if await systemd.read(path) not in {None, SliceSets()}:
                await systemd.write(path, SliceSets())
                await systemd.read(path)  # its answer comes after the cgroup is written
    except SystemdAbsentError as error:
        LOG.warning("systemd could not be reset", extra={"why": error})
        return []
    except SystemdError as error:
        return [f"systemd may still have cpusets for {' and '.join(paths)}: {error}"]
    finally:
        await systemd.close()
    return []


async def _update_runtime(
    pods: PodTree, runtime: ContainerRuntime, path: str, resources: ContainerResources
) -> list[str]:
    """Send the runtime what a container has now; returns what could not be done."""
    parsed = pods.naming.parse(path)
    if parsed.kind is not Kind.CONTAINER:
        return []
    try:
        if await runtime.containers(parsed.container_id):
            await runtime.update_resources(parsed.container_id, resources)
    except CriNotFoundError:
        return []  # it ended
    except CriError as error:
        return [f"container {parsed.container_id} was not updated in the runtime: {error}"]
    return []
