"""What a report has of a cluster: objects, versions, Events, and logs of numapin."""

from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass
from typing import Any, Final

from numapin_api.names import GROUP
from numapin_cli.bundle.collected import Collected
from numapin_cli.bundle.own_pods import masked, own_pod
from numapin_cli.bundle.reduced import reduced
from numapin_cli.inputs.manifests import section
from numapin_cli.live.reader import ALIVE, Reader
from numapin_cli.live.server import is_unknown_resource, said
from numapin_cli.near_names import did_you_mean
from numapin_cli.subcommand import CommandError
from numapin_client.errors import BadRequestError, ClientError, NotFoundError
from numapin_client.resources import (
    CPU_POLICIES,
    EVENTS,
    NAMESPACES,
    NODE_ASSIGNMENTS,
    NODE_REPORTS,
    NODE_TOPOLOGIES,
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Json,
    Key,
    Resource,
)
from numapin_client.transport.connection import Request

OWN: Final = "app.kubernetes.io/name=numapin"
_COMPONENT: Final = "app.kubernetes.io/component"
_LOG_BYTES: Final = 2 << 20
_MOST_EVENTS: Final = 5000

_OF_NODES: Final = (NODES, NODE_TOPOLOGIES, NODE_REPORTS, NODE_ASSIGNMENTS)
"""Reports are read before the NodeAssignments that they are about; see `NodeParts`."""

_MAY_BE_UNKNOWN: Final = frozenset(
    {RESOURCE_CLAIMS, RESOURCE_SLICES, NODE_REPORTS, NODE_TOPOLOGIES}
)
"""Kinds that an older Kubernetes, or CRDs of an older numapin, do not have."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What of a cluster goes into a report.

    Attributes:
        namespace: that of numapin.
        nodes: only these nodes and their pods; empty for all.
        log_lines: the last lines of each log; 0 for none.
        logs_of: from how many nodes the logs of enforcer and standby are read.
    """

    namespace: str
    nodes: tuple[str, ...]
    log_lines: int
    logs_of: int


class ServerCollector:
    """Collects from an API server; what is refused becomes a problem of the report."""

    def __init__(self, reader: Reader, wanted: Wanted, collected: Collected) -> None:
        self._reader, self._wanted, self._collected = reader, wanted, collected

    async def collect(self) -> None:
        """Collect everything.

        Raises:
            ClientError: the API server does not say its version: there is none, or no login.
        """
        version = await self._reader.client.connection.ask(Request("GET", "/version"))
        self._collected.add_json("server-version.json", version, "the API server's version")
        await self._check_nodes()
        objects = [one async for one in self._objects()]
        self._collected.add_objects(
            objects,
            "policies, NodeAssignments, NodeReports, NodeTopologies, Nodes, Namespaces, pods and"
            " ResourceClaims",
        )
        await self._attempt("events.json", self._events)
        await self._attempt("numapin-pods.json", lambda: self._own_pods(objects))

    async def _check_nodes(self) -> None:
        """Raises CommandError if there is no such node."""
        if not self._wanted.nodes:
            return
        known = {key.name for key in await self._reader.names_if_allowed(NODES)}
        for name in self._wanted.nodes:
            if known and name not in known:
                raise CommandError(f"there is no node {name}; {did_you_mean(name, known)}")

    async def _objects(self) -> AsyncIterator[Json]:
        for resource in (*_OF_NODES, NAMESPACES, CPU_POLICIES, RESOURCE_CLAIMS):
            for one in await self._listed(resource):
                if (
                    not self._wanted.nodes
                    or resource not in _OF_NODES
                    or one["metadata"]["name"] in self._wanted.nodes
                ):
                    yield one
        on_nodes = [f"spec.nodeName={node}" for node in self._wanted.nodes]
        for selector in on_nodes or [""]:
            for one in await self._listed(RESOURCE_SLICES, field_selector=selector):
                yield one
            alive = f"{ALIVE},{selector}".rstrip(",")
            for one in await self._listed(PODS, field_selector=alive):
                yield one

    async def _listed(self, resource: Resource, **selectors: str) -> list[Json]:
        """The objects, reduced; none, and a problem, if they cannot be listed."""

        def keep(body: Json) -> Json:
            return reduced(resource.kind, body)

        try:
            listed = await self._reader.all(resource, keep, **selectors)
        except NotFoundError as error:
            if resource not in _MAY_BE_UNKNOWN or not is_unknown_resource(error):
                self._problem(resource.plural, error)
            return []
        except ClientError as error:
            self._problem(resource.plural, error)
            return []
        return [dict(one.content) for one in listed]

    async def _events(self) -> None:
        def keep(body: Json) -> Json:
            found = reduced("Event", body)
            return found | {"note": masked(str(found.get("note") or ""))}

        listed = await self._reader.all(EVENTS, keep)
        ours = [one.content for one in listed if self._is_ours(one.content)]
        about = "Events of numapin, and of its namespace"
        self._collected.add_json("events.json", ours[-_MOST_EVENTS:], about)

    def _is_ours(self, event: Mapping[str, Any]) -> bool:
        by_us = str(event.get("reportingController") or "").startswith(GROUP)
        return by_us or section(event, "regarding").get("namespace") == self._wanted.namespace

    async def _own_pods(self, objects: Sequence[Json]) -> None:
        namespace = self._wanted.namespace
        listed = await self._reader.all(PODS, own_pod, namespace=namespace, label_selector=OWN)
        pods = [dict(one.content) for one in listed]
        if not pods:
            self._collected.problems.append(
                f"numapin-pods.json: namespace {namespace} has no pods with the label {OWN}; name"
                " another one with --namespace"
            )
        self._collected.add_json("numapin-pods.json", pods, "numapin's own pods and their images")
        if not self._wanted.log_lines:
            return
        for pod in chosen_for_logs(pods, _unready(objects), self._wanted):
            for container in pod["spec"].get("containers") or ():
                await self._log(pod, container["name"])

    async def _log(self, pod: Json, container: str) -> None:
        name = f"logs/{pod['metadata']['name']}_{container}.log"
        await self._attempt(name, lambda: self._read_log(pod, container, name, previous=False))
        if _has_restarted(pod, container):
            name = name.removesuffix(".log") + ".previous.log"
            await self._attempt(name, lambda: self._read_log(pod, container, name, previous=True))

    async def _read_log(self, pod: Json, container: str, name: str, *, previous: bool) -> None:
        params = {"container": container, "tailLines": str(self._wanted.log_lines)}
        params |= {"previous": "true"} if previous else {}
        try:
            text = await self._reader.client.read_log(Key.of(pod), params, _LOG_BYTES)
        except (BadRequestError, NotFoundError):
            if previous:  # the runtime has removed it
                return
            raise
        about = "the last lines of the log" + (" before its last restart" if previous else "")
        self._collected.add(name, masked(text.decode(errors="replace")), about)

    async def _attempt(self, name: str, collect: Callable[[], Awaitable[None]]) -> None:
        try:
            await collect()
        except ClientError as error:
            self._problem(name, error)

    def _problem(self, what: str, error: ClientError) -> None:
        self._collected.problems.append(f"{what}: {said(error)}")


def chosen_for_logs(
    pods: Sequence[Json], unready: Collection[str], wanted: Wanted
) -> Iterator[Json]:
    """The pods whose logs are read: every operator, and what runs on some of the nodes.

    Nodes of `unready` come first.
    """
    nodes = sorted({_node(pod) for pod in pods if not _is_operator(pod)} - {""})
    chosen = [one for one in nodes if one in wanted.nodes] or sorted(
        nodes, key=lambda node: (node not in unready, node)
    )
    for pod in pods:
        if _is_operator(pod) or _node(pod) in chosen[: wanted.logs_of]:
            yield pod


def _is_operator(pod: Json) -> bool:
    return section(pod["metadata"], "labels").get(_COMPONENT) == "operator"


def _node(pod: Json) -> str:
    return str(pod["spec"].get("nodeName") or "")


def _unready(objects: Sequence[Json]) -> frozenset[str]:
    """The nodes that are not reported Ready, in the NodeAssignment or in the NodeReport."""
    reported = [one for one in objects if one["kind"] in {NODE_ASSIGNMENTS.kind, NODE_REPORTS.kind}]
    ready = {
        one["metadata"]["name"]
        for one in reported
        for condition in section(one, "status").get("conditions") or ()
        if condition.get("type") == "Ready" and condition.get("status") == "True"
    }
    return frozenset(one["metadata"]["name"] for one in reported) - ready


def _has_restarted(pod: Json, container: str) -> bool:
    statuses = pod["status"].get("containerStatuses") or ()
    return any(one.get("name") == container and one.get("restartCount") for one in statuses)
