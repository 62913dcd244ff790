"""`numapin-enforcer`: read settings, build every part, run."""

import asyncio
import os
import signal
import sys
from collections.abc import Coroutine, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from numapin_client.client import ApiClient, connect
from numapin_client.errors import LoginError
from numapin_client.login.find import find_login
from numapin_client.resources import Key
from numapin_daemon.clock import SystemClock
from numapin_daemon.extras import needs_extra
from numapin_daemon.logs.lines import setup_logging
from numapin_daemon.probes.health import LoopHealth
from numapin_daemon.probes.server import AddressError, serve_probes
from numapin_daemon.telemetry.export import exporting
from numapin_daemon.telemetry.exposition import MetricsPage
from numapin_enforcer.agent import RETRY_SECONDS, Agent
from numapin_enforcer.assignment.acceptance import Acceptance
from numapin_enforcer.assignment.local_copy import LocalCopy, LocalCopyWriter
from numapin_enforcer.cfs_quota.updater import CfsQuotaUpdater
from numapin_enforcer.cgroups.errors import CgroupError
from numapin_enforcer.cgroups.kubepods.finder import KubepodsFinder
from numapin_enforcer.cgroups.memory.binding import SavedMems
from numapin_enforcer.cgroups.memory.mover import MemoryMover
from numapin_enforcer.cgroups.mounts import NoCpusetError
from numapin_enforcer.cgroups.naming import InvalidIdError
from numapin_enforcer.followers.cfs_quota import CfsQuotas
from numapin_enforcer.followers.changes import Changes
from numapin_enforcer.followers.containers import Containers
from numapin_enforcer.followers.followers import Followers
from numapin_enforcer.followers.memory import Memory
from numapin_enforcer.followers.observed import Observed
from numapin_enforcer.followers.outside import Outside
from numapin_enforcer.followers.runtime import RuntimeResources
from numapin_enforcer.followers.slices import Slices
from numapin_enforcer.hardware.discovery import DiscoveryError
from numapin_enforcer.hardware.hotplug import Machine
from numapin_enforcer.host.follower import host_processes, keeper_on
from numapin_enforcer.interrupts.follower import interrupts, masks_of
from numapin_enforcer.measuring import build_metrics, build_noise, trace
from numapin_enforcer.node.boot_id import read_boot_id
from numapin_enforcer.node.dra_claims import DraClaims
from numapin_enforcer.node.heartbeat import Heartbeat, Progress
from numapin_enforcer.node.kubelet_checkpoint import KubeletPins
from numapin_enforcer.node.lock import NodeLock
from numapin_enforcer.node.lock_keeper import LockLostError, keep_alive, wait_for_lock
from numapin_enforcer.node.realtime import raise_priority, thread_pool
from numapin_enforcer.partitions.follower import Partitions
from numapin_enforcer.passes.enforcing import Enforcing
from numapin_enforcer.passes.inputs import Assignments, Inputs
from numapin_enforcer.passes.watched_pods import WatchedPods
from numapin_enforcer.podresources.follower import Devices
from numapin_enforcer.release import (
    ReleaseError,
    lock_for_release,
    release_all,
    release_host,
    restore_caches,
    restore_interrupts,
)
from numapin_enforcer.resctrl.follower import caches, resctrl_of
from numapin_enforcer.runtime.container_names import ContainerNames
from numapin_enforcer.runtime.outside_containers import OutsideContainers
from numapin_enforcer.runtime.updates.previous_updates import PreviousUpdates
from numapin_enforcer.runtime.updates.updater import RuntimeUpdater
from numapin_enforcer.schedule import Schedule
from numapin_enforcer.settings import Settings, parse_settings
from numapin_enforcer.start_gate.follower import StartGates
from numapin_enforcer.status.events.poster import EventPoster
from numapin_enforcer.status.node_lease import NodeLease
from numapin_enforcer.status.own_objects import OwnObjects
from numapin_enforcer.status.publisher import Publisher
from numapin_enforcer.status.reporter import StatusReporter
from numapin_enforcer.systemd.interface import Systemd
from numapin_enforcer.systemd.updater import SliceUpdater
from numapin_enforcer.telemetry.samples.foreign_tasks import ForeignTasks
from numapin_enforcer.telemetry.samples.kernel_counters import KernelCounters
from numapin_enforcer.threads.check import ThreadCheck
from numapin_enforcer.threads.reader import ThreadReader

if TYPE_CHECKING:
    from numapin_enforcer.lister.serving import PodResourcesServer

_PACKAGES: Final = {"grpclib": "grpclib", "google": "protobuf", "google.protobuf": "protobuf"}

with needs_extra("numapin-enforcer", "enforcer", _PACKAGES):
    from numapin_enforcer.runtime.cri_client import CriClient, find_socket

MOST_SPANS: Final = 512
"""Spans that may wait to be sent: 0.7 MiB of memory, and those of 170 containers."""

_EXPECTED = (
    AddressError,
    CgroupError,
    DiscoveryError,
    InvalidIdError,
    LockLostError,
    LoginError,
    NoCpusetError,
    ReleaseError,
)
"""Errors of the environment, which explain themselves; others are shown with their traceback."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run until SIGTERM or SIGINT; pins stay in force."""
    settings = parse_settings(sys.argv[1:] if arguments is None else arguments, os.environ)
    setup_logging(settings.log_level, settings.log_format)
    try:
        asyncio.run(_release(settings) if settings.release else _run(settings))
    except _EXPECTED as error:
        sys.exit(f"numapin-enforcer: {error}")
    except ExceptionGroup as group:  # from a task
        expected, others = group.split(_EXPECTED)
        if others is not None or expected is None:
            raise
        sys.exit(f"numapin-enforcer: {expected.exceptions[0]}")


async def _release(settings: Settings) -> None:
    async with _runtime(settings) as runtime:
        await lock_for_release(NodeLock(settings.state_dir))
        kubepods = KubepodsFinder(settings.cgroupfs, settings.cgroup_root)
        machine = Machine(settings.sysfs, settings.procfs, kubepods.allowed)
        systemd = partial(_systemd, settings)
        async with AsyncExitStack() as each:  # one that fails keeps no other from being released
            each.push_async_callback(
                release_all, machine.topology, kubepods, runtime, systemd, settings.state_dir
            )
            each.push_async_callback(
                release_host, keeper_on(kubepods.mounts, settings, systemd), kubepods
            )
            each.callback(restore_caches, resctrl_of(settings))
            restore_interrupts(masks_of(settings), machine.topology)


async def _run(settings: Settings) -> None:
    unprioritized = raise_priority(settings.realtime_priority)
    asyncio.get_running_loop().set_default_executor(thread_pool())
    wake, ended = asyncio.Event(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    lock = NodeLock(settings.state_dir)
    await wait_for_lock(lock, ended)
    if ended.is_set():
        return
    heartbeat, progress = Heartbeat(settings.run_dir), Progress()
    async with AsyncExitStack() as stack, asyncio.TaskGroup() as group:
        alive = group.create_task(keep_alive(heartbeat, lock, progress), name="heartbeat")
        login = find_login(str(settings.kubeconfig or ""), os.environ)
        api = await stack.enter_async_context(connect(login, user_agent="numapin-enforcer"))
        runtime = await stack.enter_async_context(_runtime(settings))
        parts = _build(settings, api, runtime, wake)
        agent = parts.agent
        agent.progress = progress
        metrics = build_metrics(settings, agent, parts.objects.assignment.age_seconds)
        about = {"k8s.node.name": settings.node_name}
        sent = await stack.enter_async_context(
            exporting("numapin-enforcer", about, metrics.meter, os.environ, MOST_SPANS)
        )
        if sent.traces is not None:
            trace(agent, metrics, sent.traces)
        agent.inputs.remarks = tuple(filter(None, (unprioritized, sent.problem)))
        page = MetricsPage(metrics.meter.collect).text
        noise = build_noise(settings, agent, wake.set)
        health = replace(agent.reporter.health.health(), metrics=page, documents=noise.documents)
        await stack.enter_async_context(serve_probes(health, settings.health_address))
        tasks = [
            group.create_task(work, name=name)
            for name, work in {**_tasks(parts, settings.resync_seconds), **noise.tasks()}.items()
        ]
        await ended.wait()
        for task in (*tasks, alive):
            task.cancel()


class _Parts(NamedTuple):
    """The loop, and what runs beside it and is seen by it only as what it needs."""

    agent: Agent
    objects: OwnObjects
    events: EventPoster
    lease: NodeLease
    answers: "PodResourcesServer | None"
    """None unless its socket is named."""


def _tasks(parts: _Parts, resync_seconds: float) -> dict[str, Coroutine[Any, Any, None]]:
    """Everything that runs until the program ends, by name."""
    agent, followers = parts.agent, parts.agent.followers
    names = followers.containers.names
    answers = {"pod-resources": parts.answers.run()} if parts.answers is not None else {}
    return {
        **answers,
        "agent": agent.run(),
        "objects": parts.objects.run(),
        "local-copy": agent.inputs.local_copy.run(),
        "names": names.run(),
        "runtime-events": names.listen(),
        "runtime-probe": names.probe(resync_seconds),
        "runtime-updates": followers.runtime.updater.run(),
        "outside-containers": followers.outside.finder.run(),
        "cfs-quota": followers.cfs_quota.updater.run(),
        "memory": followers.memory.mover.run(),
        "slices": followers.slices.updater.run(),
        "devices": followers.devices.kubelet.run(),
        "host-processes": followers.host.updater.run(),
        "nri": followers.start_gates.plugin.run(),
        "interrupts": followers.interrupts.updater.run(),
        "resctrl": followers.caches.updater.run(),
        "status": agent.reporter.publisher.run(),
        "events": parts.events.run(),
        "lease": parts.lease.run(),
    }


def _runtime(settings: Settings) -> CriClient:
    return CriClient(settings.cri_socket or find_socket())


def _systemd(settings: Settings) -> Systemd:
    """Systemd's client, imported only when it is used: that saves 1 MiB on other nodes."""
    from numapin_enforcer.systemd.dbus import SystemdClient  # noqa: PLC0415

    return SystemdClient(settings.systemd_socket)


def _answers(
    settings: Settings, most_age_seconds: float, wake: asyncio.Event
) -> "PodResourcesServer | None":
    """What answers exporters, imported only where its socket is named."""
    ours, kubelet = settings.serve_pod_resources, settings.pod_resources_socket
    if ours is None or kubelet is None:
        return None
    from numapin_enforcer.lister.serving import PodResourcesServer  # noqa: PLC0415

    return PodResourcesServer(ours, kubelet, most_age_seconds, wake=wake.set)


def _build(settings: Settings, api: ApiClient, runtime: CriClient, wake: asyncio.Event) -> _Parts:
    publisher = Publisher(api, settings.node_name)
    objects = OwnObjects(api, settings.node_name, publisher, wake)
    events = EventPoster(api, settings.node_name)
    inputs = _build_inputs(settings, objects.assignment, events, wake)
    inputs.reported = lambda: publisher.reported
    followers = _build_followers(settings, inputs, runtime, wake)
    schedule = Schedule(settings.resync_seconds, RETRY_SECONDS)
    gate, names = followers.memory.mover.gate, followers.containers.names
    known = (lambda: names.known, wake, schedule, SystemClock())
    pods, mounts = WatchedPods(inputs.kubepods, gate, *known), inputs.kubepods.mounts
    threads = ThreadCheck(ThreadReader(mounts, settings.procfs))
    foreign = ForeignTasks(KernelCounters(mounts, settings.procfs))
    enforcing = Enforcing(inputs.acceptance, inputs.local_copy, pods, threads, foreign)
    most_age_seconds = 3 * settings.resync_seconds + 20
    reporter = StatusReporter(publisher, LoopHealth(most_age_seconds))
    agent = Agent(inputs, pods, enforcing, followers, reporter, schedule)
    key = Key(settings.node_name, settings.namespace)
    lease = NodeLease(api, key, lambda: agent.progress.problem, lambda: objects.assignment.body)
    if (answers := _answers(settings, most_age_seconds, wake)) is not None:
        reporter.on_pass += (answers.passed,)
        inputs.unserved = lambda: answers.problem
    return _Parts(agent, objects, events, lease, answers)


def _build_inputs(
    settings: Settings, assignments: Assignments, events: EventPoster, wake: asyncio.Event
) -> Inputs:
    copy = LocalCopy(settings.state_dir, settings.node_name)
    acceptance = Acceptance(settings.node_name)
    acceptance.restore(copy)
    kubepods = KubepodsFinder(settings.cgroupfs, settings.cgroup_root)
    return Inputs(
        assignments=assignments,
        acceptance=acceptance,
        local_copy=LocalCopyWriter(copy, acceptance.accepted, wake),
        machine=Machine(settings.sysfs, settings.procfs, kubepods.allowed),
        kubelet=KubeletPins(settings.kubelet_state_dir),
        kubepods=kubepods,
        events=events,
        boot_id=read_boot_id(settings.procfs),
    )


def _build_followers(
    settings: Settings, inputs: Inputs, runtime: CriClient, wake: asyncio.Event
) -> Followers:
    kubepods, known = inputs.kubepods, inputs.acceptance
    previous = PreviousUpdates(known.spec if known.enforces else None)
    updater = RuntimeUpdater(runtime, wake)
    containers = Containers(kubepods, ContainerNames(runtime, wake), previous, updater)
    cfs_quota = CfsQuotas(kubepods, containers, CfsQuotaUpdater(settings.state_dir, wake))
    resources = RuntimeResources(containers, updater, cfs_quota.updater)
    saved, most_bytes = SavedMems(settings.state_dir), settings.most_moved_memory
    mover = MemoryMover(wake, saved, sysfs=settings.sysfs, most_moved_bytes=most_bytes)
    observed = Observed(kubepods, DraClaims(settings.cdi_dir), sysfs=settings.sysfs)
    systemd = partial(_systemd, settings)
    return Followers(
        changes=Changes(updater, inputs.events),
        containers=containers,
        cfs_quota=cfs_quota,
        runtime=resources,
        memory=Memory(kubepods, resources, mover),
        slices=Slices(containers, SliceUpdater(systemd, wake)),
        partitions=Partitions(kubepods, mover.gate, settings.state_dir, os.uname().release),
        observed=observed,
        devices=Devices(containers, runtime, settings.pod_resources_socket, wake),
        outside=Outside(kubepods, containers, observed, OutsideContainers(runtime, wake)),
        start_gates=StartGates(containers, settings.nri_socket, settings.state_dir, wake),
        host=host_processes(kubepods.mounts, settings, systemd, wake),
        interrupts=interrupts(settings, wake),
        caches=caches(settings, wake),
    )


if __name__ == "__main__":
    main()
