"""The operator's parts, wired together: what is watched, what works, when writing may begin."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from functools import partial
from typing import Any, Final

from numapin_client.cache.informer import Informer
from numapin_client.client import ApiClient
from numapin_client.errors import ClientError
from numapin_client.login.credentials import Login
from numapin_client.resources import CONTROLLER_REVISIONS, CPU_POLICIES
from numapin_client.transport.server_time import ServerClock
from numapin_daemon.clock import Clock, SystemClock
from numapin_daemon.flowcontrol.backoff import Backoff
from numapin_daemon.probes.health import Health
from numapin_daemon.probes.loop_lag import LoopLag
from numapin_daemon.telemetry.exposition import MetricsPage
from numapin_daemon.telemetry.meter import Meter
from numapin_daemon.telemetry.metric import Values
from numapin_daemon.telemetry.process import read_process
from numapin_daemon.telemetry.span import SpanSink
from numapin_operator.cluster import Cluster
from numapin_operator.heartbeats.silence import Beat
from numapin_operator.heartbeats.watcher import Marks, Watcher
from numapin_operator.installation.leadership import Leadership
from numapin_operator.installation.missing_rights import MissingRights
from numapin_operator.observe.assignments.view import AssignmentView
from numapin_operator.observe.cache import ClusterState
from numapin_operator.observe.contact import LONGEST_BACKOFF_SECONDS, describe_outages, outages_of
from numapin_operator.observe.informers import (
    build_informers,
    catch_up_if_allowed,
    held_informer,
    revision_informer,
)
from numapin_operator.observe.policy_source.history import HistoryCheck
from numapin_operator.observe.policy_source.inbox import Inbox
from numapin_operator.observe.policy_source.kopf_source import EventHandlers, KopfSource
from numapin_operator.observe.policy_source.list_comparison import ListComparison
from numapin_operator.observe.revisions import Revision
from numapin_operator.placement import PodView
from numapin_operator.shards.division import Portion
from numapin_operator.telemetry.pod_paths import PodPaths
from numapin_operator.telemetry.readings import Readings
from numapin_operator.telemetry.states import NO_NODES, NOTHING_WAITS, Written
from numapin_operator.telemetry.table import METRICS
from numapin_operator.term import Lasting, Term

STALLED_SECONDS: Final = 30.0
"""An event loop that stands still for longer needs a restart. No step of it lasts a second."""

BEHIND: Final = "nothing is written until this is as new as the beginning of the lead"

POLICIES: Final = CPU_POLICIES.plural

REVISIONS: Final = CONTROLLER_REVISIONS.plural

_log = logging.getLogger(__name__)


class Application:
    """Every part of the operator, wired together; `parts` are its tasks.

    Attributes:
        clock: measures every time; that of the API server's date and time.
        meter: has every metric.
    """

    def __init__(
        self,
        api: ApiClient,
        cluster: Cluster,
        leadership: Leadership,
        login: Login,
        clock: Clock | None = None,
    ) -> None:
        """Wire the parts together; nothing runs yet.

        Args:
            api: an open client, for the informers; its writes show which rights are missing.
            cluster: what is listed and written.
            leadership: when this operator may write.
            login: how the source of policies logs in to the API server.
            clock: measures every time; by default the machine's, with the API server's date and
                time, in which all times in objects are written and compared.
        """
        self._cluster, self._leadership = cluster, leadership
        self.clock = clock or ServerClock(api.connection.server_time)
        self._api, self._clock_of_spans = api, clock or SystemClock()
        self._rights = MissingRights(self.clock)
        api.connection.after_write = self._rights.note
        self._lag = LoopLag(pause_seconds=1.0, clock=self.clock)
        self._behind: set[str] = set()
        self._state = ClusterState()
        self._count_in(Meter(METRICS))
        self._term: Term | None = None
        self._informers = build_informers(api, self._state)
        self._leases: Informer[Beat] | None = None
        self._revisions: Informer[Revision | None] | None = None
        self._lists = ListComparison(self._compare_policies)
        self._inbox = Inbox()
        self._source = KopfSource(login, self._event_handlers())
        newest, again = (lambda: self._state.policies.newest), self._source.list_again
        self._history = HistoryCheck(newest, cluster.read_policies_version, again)
        for source in (read_process, self.read):
            self.meter.read_from(source)

    def _count_in(self, meter: Meter) -> None:
        """Have everything counted in a meter."""
        self.meter = meter
        # Traces join spans of several programs, which all have their own machine's clock.
        self._paths = PodPaths(meter, self._clock_of_spans)
        self._state.pod_bound, self._state.pod_gone = self._bound, self._paths.gone
        self._state.assignment_sent = self._paths.reported
        self._state.node_reported = self._reported
        leading, written = self._leadership.leading, self._written
        self._lasting = Lasting(
            self._cluster,
            self._state,
            leading,
            self.clock,
            meter,
            written,
            held_pods=partial(held_informer, self._api),
        )

    def serve_only(self, portion: Portion, meter: Meter) -> None:
        """Decide about the nodes of one shard, and observe no others; call it before all else.

        It counts in `meter`, whose owner calls `read`.
        """
        self._count_in(meter)
        self._informers = build_informers(self._api, self._state, portion.has)
        self._state.is_divided = portion.shards > 1
        self._lasting = replace(self._lasting, portion=portion)

    def read(self) -> Values:
        """The present values of what is not counted; may be called in any thread."""
        return self._readings().read()

    def health(self) -> Health:
        """What the probes answer."""
        page = MetricsPage(self.meter.collect)
        return Health(self._missing, fatal=self._fatal, role=self._role, metrics=page.text)

    def trace_to(self, sink: SpanSink | None) -> None:
        """Have each pod's way traced; None for no traces."""
        self._paths.sink = sink

    def annotate(self, *, cpus: bool, refusals: bool) -> None:
        """Have pods told which CPUs they have, and their refusal; call it before anything runs."""
        self._lasting = replace(self._lasting, annotates=cpus, tells_refused=refusals)

    def measure_numa_nodes(self) -> None:
        """Measure what each NUMA node has left; call it before anything runs."""
        self._lasting = replace(self._lasting, measures_numa=True)

    def publish_topologies(self) -> None:
        """Have NodeResourceTopologies written where a policy says so; call it before all else."""
        self._lasting = replace(self._lasting, publishes=True)

    def watch_heartbeats(self, leases: Informer[Beat], marks: Marks) -> None:
        """Have silent enforcers reported; call it before anything runs.

        Nothing else waits for their Leases: without the right to watch them, pods are placed as
        ever.
        """
        self._leases = leases

        def watch() -> Coroutine[Any, Any, None]:
            return Watcher(leases, marks, self.clock).run()

        self._lasting = replace(self._lasting, heartbeats=watch)

    def watch_revisions(self, api: ApiClient, namespace: str) -> None:
        """Have generations of policies found that have reached every node.

        Call it before anything runs.
        """
        self._revisions = revision_informer(api, namespace, self._state)

    def parts(self) -> dict[str, Coroutine[Any, Any, object]]:
        """The tasks, by name; each runs until cancelled."""
        parts: dict[str, Coroutine[Any, Any, object]] = {
            f"{name} informer": informer.run() for name, informer in self._informers.items()
        }
        parts["loop lag"] = self._lag.run()
        parts["list comparison"] = self._lists.run()
        parts["history check"] = self._history.run()
        parts[POLICIES] = self._follow_policies()
        parts["events of policies"] = self._inbox.run()
        parts["working"] = self._work()
        if self._leases is not None:
            parts["leases informer"] = self._leases.run()
        if self._revisions is not None:
            parts["revisions informer"] = self._revisions.run()
        return parts

    async def wait_until_listed(self) -> None:
        """Wait until every kind has been listed."""
        for informer in self._informers.values():
            await informer.synced.wait()
        await self._lists.done.wait()

    def _bound(self, pod: PodView) -> None:
        """Follow a new pod; what came before this operator leads is not new."""
        if self._leadership.leading.is_set():
            self._paths.bound(pod)

    def _written(self, done: Written) -> None:
        """Follow what was written; its report may have come before the answer to the write."""
        self._paths.written(done)
        if (assignment := self._state.assignments.get(done.node)) is not None:
            self._reported(assignment)

    def _reported(self, assignment: AssignmentView) -> None:
        """Follow what an enforcer reports, if a pod of its node waits for that."""
        report = self._state.reports.get(assignment.name)
        if report is None or not self._paths.waits_on(assignment.name):
            return
        if (read := assignment.told_by(report)) is not None:
            metadata = {"name": assignment.name}
            self._paths.reported({"metadata": metadata, "status": read.status()})

    def write_old_form(self) -> None:
        """Write assignments as numapin 0.1 reads them; call it before anything runs."""
        self._state.writes_lines = False

    def _readings(self) -> Readings:
        return Readings(
            self._informers,
            self.clock,
            self._leadership.holds,
            lambda: term.queue.state() if (term := self._term) else NOTHING_WAITS,
            lambda: term.outputs.statuses.state() if (term := self._term) else NO_NODES,
            lambda: len(self._state.policies),
            lambda: term.outputs.evictor.waiting if (term := self._term) else 0,
            lambda: self._state.held.waiting,
            lambda: term.numa_nodes.read() if (term := self._term) else {},
        )

    def _event_handlers(self) -> EventHandlers:
        state, put = self._state, self._inbox.put
        return EventHandlers(
            put=partial(put, state.put_policy),
            drop=partial(put, state.drop_policy),
            listed=self._lists.request,
            connected=self._connected,
        )

    def _connected(self) -> None:
        self._history.request()

    async def _compare_policies(self) -> None:
        """List the policies; a list that is older than what was seen before replaces it."""
        state, seen = self._state, self._state.policies.newest
        policies = await self._cluster.list_policies()
        if policies.version < seen:
            versions = {"listed": policies.version, "seen": seen}
            _log.warning("the API server has lost newer policies: taking the list", extra=versions)
            state.policies.start_over()
        state.replace_policies(policies)

    async def _follow_policies(self) -> None:
        """Start the source once policies are known to be served."""
        await self._lists.done.wait()
        await self._source.run()

    async def _work(self) -> None:
        """Plan and write in each term, once every kind has been listed."""
        await self.wait_until_listed()
        _log.info(
            "listed everything",
            extra={"nodes": len(self._state.nodes), "policies": len(self._state.policies)},
        )
        await self._leadership.run_terms(self._lead)

    async def _lead(self) -> None:
        """Decide and write until the term ends."""
        await self._catch_up()
        self._term = Term(self._lasting)
        try:
            await self._term.run()
        finally:
            self._term = None

    async def _catch_up(self) -> None:
        """Wait until the caches show all that the API server had when the term began.

        What the last leader wrote, and why, must be known before anything is taken for gone.
        """
        parts = {name: informer.catch_up for name, informer in self._informers.items()}
        parts[POLICIES] = self._compare_policies
        parts[REVISIONS] = partial(catch_up_if_allowed, self._revisions)
        try:
            async with asyncio.TaskGroup() as tasks:
                for name, part in parts.items():
                    self._behind.add(name)
                    tasks.create_task(self._until_done(name, part), name=f"catch up on {name}")
        finally:
            self._behind.clear()
        _log.info("caught up, writing begins")

    async def _until_done(self, name: str, part: Callable[[], Awaitable[None]]) -> None:
        backoff = Backoff(cap_seconds=LONGEST_BACKOFF_SECONDS)
        while True:
            try:
                await part()
            except ClientError as error:
                _log.warning("cannot catch up", extra={"what": name, "error": str(error)})
                await self.clock.sleep(backoff.next_seconds(error.retry_after_seconds))
            else:
                self._behind.discard(name)
                return

    def _missing(self) -> dict[str, str]:
        outages, missing = outages_of(self._informers)
        if not self._lists.done.is_set():
            why = self._lists.outage.why if self._lists.outage else "no answer yet"
            missing["lists of policies"] = f"not listed yet: {why}"
        elif self._lists.outage is not None:
            outages["lists of policies"] = self._lists.outage
        missing |= dict.fromkeys(tuple(self._behind), BEHIND) | self._rights.describe()
        if self._leadership.election is not None:
            missing |= self._leadership.election.health().missing()
        return describe_outages(outages, self.clock.monotonic()) | missing | self._source.missing()

    def _fatal(self) -> str:
        late_seconds = self._lag.current_seconds()
        if late_seconds > STALLED_SECONDS:
            return f"the event loop has stood still for {late_seconds:.0f} s"
        election = self._leadership.election
        if election is not None and (hung := election.health().fatal()):
            return f"leader election: {hung}"
        return ""

    def _role(self) -> str:
        return "leading" if self._leadership.holds() else "standing by"
