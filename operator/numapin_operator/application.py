"""The operator put together: what is watched, who works, when the first write may happen."""

import asyncio
import logging
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, Final, Self

from numapin_client.client import ApiClient, Source
from numapin_client.errors import ClientError, NotFoundError
from numapin_client.informer import Informer
from numapin_client.login.credentials import Login
from numapin_client.resources import (
    CPU_POLICIES,
    NAMESPACES,
    NODE_ASSIGNMENTS,
    NODES,
    PODS,
    Json,
)
from numapin_client.store import Change
from numapin_daemon.backoff import Backoff
from numapin_operator.cluster import Cluster
from numapin_operator.health import Health
from numapin_operator.nodes.controller import Controller
from numapin_operator.nodes.workqueue import WorkQueue
from numapin_operator.observe.cache import ClusterState
from numapin_operator.observe.kopf_handlers import Receivers, build_registry
from numapin_operator.observe.kopf_source import build_settings, open_session, serve
from numapin_operator.observe.pods import parse_pod
from numapin_operator.observe.records import AssignmentView, NodeView, PolicyView, slim_labels
from numapin_operator.placement import PodFormatError, PodView
from numapin_operator.policies.status_writer import Reporter

WORKERS: Final = 16
"""Nodes planned and written at the same time."""

LIVE_PODS: Final = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"
"""Bound and not ended; a pod that ends counts as gone, the API server tells it as deleted."""

NO_CRDS: Final = "; install numapin's CRDs: kubectl apply -k crds"

_log = logging.getLogger(__name__)


class Standalone:
    """The only operator there is: it leads for as long as its context lasts."""

    def __init__(self) -> None:
        self.leading = asyncio.Event()

    async def __aenter__(self) -> Self:
        self.leading.set()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.leading.clear()


class Application:
    """Every part of the operator, wired together; `parts` are its tasks."""

    def __init__(
        self, api: ApiClient, cluster: Cluster, leading: asyncio.Event, login: Login
    ) -> None:
        """Wire the parts together; nothing runs yet.

        Args:
            api: an open client, for the informers.
            cluster: what is listed and written.
            leading: set while this operator may write.
            login: how kopf is to be known to the API server.
        """
        self._cluster, self._leading, self._login = cluster, leading, login
        self._queue = WorkQueue()
        self._reporter = Reporter(cluster)
        self._state = ClusterState(self._queue.add, self._reporter.policy_changed)
        self._controller = Controller(cluster, self._state, self._queue, self._reporter)
        self._informers: dict[str, Informer[Any]] = {
            "pods": Informer(api, Source(PODS, field_selector=LIVE_PODS), decode_pod, self._pods),
            "nodes": Informer(api, Source(NODES), NodeView.decode, self._nodes),
            "namespaces": Informer(api, Source(NAMESPACES), _labels, self._namespaces),
        }
        self._listed = asyncio.Event()
        self._settled = asyncio.Event()
        self._kopf_error: BaseException | None = None

    def health(self) -> Health:
        """What the probe pages show."""
        return Health(self._missing, self._role)

    def parts(self) -> dict[str, Coroutine[Any, Any, object]]:
        """The tasks, by name; each runs until cancelled."""
        parts: dict[str, Coroutine[Any, Any, object]] = {
            f"{name} informer": informer.run() for name, informer in self._informers.items()
        }
        parts["kopf"] = self._serve_kopf()
        parts["settling"] = self._settle_whenever_listed()
        parts["working"] = self._work()
        return parts

    async def synced(self) -> None:
        """Wait until all there is has been seen."""
        for informer in self._informers.values():
            await informer.synced.wait()
        await self._settled.wait()

    async def _work(self) -> None:
        """Plan and write, once all there is has been seen."""
        await self.synced()
        _log.info(
            "seen everything",
            extra={"nodes": len(self._state.nodes), "policies": len(self._state.policies)},
        )
        async with asyncio.TaskGroup() as tasks:
            for number in range(WORKERS):
                tasks.create_task(self._controller.work(self._leading), name=f"worker {number}")
            tasks.create_task(self._reporter.run(self._state, self._leading), name="reporter")
            tasks.create_task(self._controller.teller.run(), name="teller")
            tasks.create_task(self._controller.evictor.run(), name="evictor")

    async def _serve_kopf(self) -> None:
        """Start kopf when both kinds are known to be served: it would not notice a later CRD."""
        await self._settled.wait()
        loop = asyncio.get_running_loop()
        collections = {kind.collection_path() for kind in (CPU_POLICIES, NODE_ASSIGNMENTS)}

        def listed() -> None:
            loop.call_soon_threadsafe(self._listed.set)

        receivers = Receivers(loop, self._take_policy, self._take_assignment)
        registry = build_registry(receivers, lambda: open_session(self._login, collections, listed))
        await serve(registry, build_settings(), self._kopf_ended)

    def _kopf_ended(self, error: BaseException | None) -> None:
        self._kopf_error = error

    def _take_policy(self, body: Mapping[str, Any], gone: bool) -> None:
        policies, (name, version) = self._state.policies, _named(body)
        if gone:
            self._state.policies_changed(policies.drop(name, version))
        elif policies.is_news(name, version):
            self._state.policies_changed(policies.put(PolicyView.decode(body)))

    def _take_assignment(self, body: Mapping[str, Any], gone: bool) -> None:
        assignments, (name, version) = self._state.assignments, _named(body)
        if gone:
            self._state.assignments_changed(assignments.drop(name, version))
        elif assignments.is_news(name, version):
            seen = AssignmentView.decode(body, assignments.get(name))
            self._state.assignments_changed(assignments.put(seen))

    async def _settle_whenever_listed(self) -> None:
        """Compare with whole lists at the start, and whenever kopf has listed anew.

        kopf never tells what was deleted while its watch was interrupted.
        """
        backoff = Backoff()
        while True:
            try:
                await self._settle()
            except ClientError as error:
                wait_seconds = backoff.next_seconds(error.retry_after_seconds)
                remedy = NO_CRDS if isinstance(error, NotFoundError) else ""
                _log.warning(
                    "policies and assignments cannot be listed",
                    extra={"error": f"{error}{remedy}", "again_in_seconds": round(wait_seconds, 1)},
                )
                await asyncio.sleep(wait_seconds)
            else:
                backoff.reset()
                self._settled.set()
                await self._listed.wait()

    async def _settle(self) -> None:
        self._listed.clear()
        assignments = await self._cluster.list_assignments()
        policies = await self._cluster.list_policies()
        state = self._state
        state.assignments_changed(state.assignments.settle(assignments.states, assignments.version))
        state.policies_changed(state.policies.settle(policies.states, policies.version))

    def _pods(self, changes: Sequence[Change[PodView]]) -> None:
        for change in changes:
            old, new = change.old, change.new
            if old is not None and (new is None or new.node != old.node):
                self._state.drop_pod(change.key, old.node)
            if new is not None:
                self._state.put_pod(change.key, new)

    def _nodes(self, changes: Sequence[Change[NodeView]]) -> None:
        for change in changes:
            if change.new is None:
                self._state.drop_node(change.key.name)
            else:
                self._state.put_node(change.new)

    def _namespaces(self, changes: Sequence[Change[Mapping[str, str]]]) -> None:
        for change in changes:
            if change.new is None:
                self._state.drop_namespace(change.key.name)
            else:
                self._state.put_namespace(change.key.name, change.new)

    def _missing(self) -> dict[str, str]:
        missing = {
            name: str(informer.problem or "not listed yet")
            for name, informer in self._informers.items()
            if not informer.synced.is_set()
        }
        if not self._settled.is_set():
            missing["policies and assignments"] = "not listed yet"
        if self._kopf_error is not None:
            missing["kopf"] = f"ended, starts again: {self._kopf_error!r}"
        return missing

    def _role(self) -> str:
        return "leading" if self._leading.is_set() else "standing by"


def decode_pod(body: Json) -> PodView:
    """Read a pod; one that cannot be read shares, and takes nothing down with it."""
    try:
        return parse_pod(body)
    except PodFormatError as error:
        _log.warning("a pod cannot be read, it will share", extra={"error": str(error)})
        metadata, spec = body["metadata"], body.get("spec") or {}
        return PodView(
            uid=metadata["uid"],
            namespace=metadata.get("namespace", ""),
            name=metadata["name"],
            qos="BestEffort",
            containers=(),
            node=spec.get("nodeName") or "",
        )


def _labels(body: Json) -> Mapping[str, str]:
    return slim_labels(body["metadata"])


def _named(body: Mapping[str, Any]) -> tuple[str, int]:
    metadata = body["metadata"]
    return metadata["name"], int(metadata["resourceVersion"])
