"""Metrics and traces of an agent."""

from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple

from numapin_daemon.telemetry.span import SpanSink
from numapin_enforcer.agent import Agent
from numapin_enforcer.settings import Settings
from numapin_enforcer.telemetry.node_metrics import NodeMetrics
from numapin_enforcer.telemetry.node_traces import NodeTraces
from numapin_enforcer.telemetry.noise.look import Looker
from numapin_enforcer.telemetry.noise.page import CpuPage
from numapin_enforcer.telemetry.noise.tasks import TaskReader
from numapin_enforcer.telemetry.noise.watch import NoiseWatch
from numapin_enforcer.telemetry.promised import promised_values
from numapin_enforcer.telemetry.samples.caches import cache_values
from numapin_enforcer.telemetry.samples.containers import Samples
from numapin_enforcer.telemetry.samples.cpus import CpuSamples
from numapin_enforcer.telemetry.samples.kernel_counters import KernelCounters
from numapin_enforcer.telemetry.table import PASS_AGE, STARTS
from numapin_enforcer.threads.reader import ThreadReader


def build_metrics(
    settings: Settings, agent: Agent, age_seconds: Callable[[], float]
) -> NodeMetrics:
    """What /metrics shows; `age_seconds` of the NodeAssignment as the API server has it."""
    count = agent.followers.changes.count
    counters = _counters(settings, agent)
    cpus = CpuSamples(counters) if settings.cpu_metrics else None
    metrics = NodeMetrics(
        Samples(counters, each_container=settings.container_metrics, cpus=cpus),
        lambda: count.causes,
        age_seconds,
        agent.inputs.acceptance.spec,
    )
    agent.reporter.on_pass += (metrics.passed,)
    metrics.meter.read_from(lambda: {STARTS: agent.followers.start_gates.starts})
    metrics.meter.read_from(lambda: {PASS_AGE: {(): agent.progress.age_seconds()}})
    promised = agent.followers.observed.promised
    metrics.meter.read_from(lambda: promised_values(promised.found))
    caches = agent.followers.caches.updater
    metrics.meter.read_from(lambda: cache_values(caches.counters()))
    return metrics


class Noise(NamedTuple):
    """What says by name what runs on exclusive CPUs.

    Attributes:
        documents: the pages beside /metrics, by path.
        watch: what looks from time to time.
    """

    documents: dict[bytes, Callable[[], str]]
    watch: NoiseWatch | None

    def tasks(self) -> dict[str, Coroutine[Any, Any, None]]:
        """What runs in the background, by name."""
        return {"noise": self.watch.run()} if self.watch is not None else {}


def build_noise(settings: Settings, agent: Agent, wake: Callable[[], object]) -> Noise:
    """Nothing at all unless it is asked for; `wake` has a pass made."""
    if not settings.cpu_metrics:
        return Noise({}, None)
    page, watch = CpuPage(_looker(settings, agent)), NoiseWatch(_looker(settings, agent), wake)
    agent.reporter.on_pass += (page.passed, watch.passed)
    agent.enforcing.disturbances = lambda: watch.found
    return Noise({b"/cpus": page.text}, watch)


def _looker(settings: Settings, agent: Agent) -> Looker:
    """For one thread: reading masks is for one at a time."""
    counters = _counters(settings, agent)
    threads = ThreadReader(agent.inputs.kubepods.mounts, settings.procfs)
    return Looker(counters, TaskReader(settings.procfs, threads.mask, counters.thread_times))


def _counters(settings: Settings, agent: Agent) -> KernelCounters:
    mounts = agent.inputs.kubepods.mounts
    return KernelCounters(mounts, settings.procfs, settings.interrupts)


def trace(agent: Agent, metrics: NodeMetrics, sink: SpanSink) -> None:
    """Have each pod's way traced."""
    known = agent.inputs.acceptance
    traces = NodeTraces(sink, known.node_name, known.spec)
    metrics.traces, agent.reporter.publisher.on_written = traces, traces.reported
