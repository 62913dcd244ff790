"""The API server as the operator reads and writes it."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, Literal

from numapin_api import names
from numapin_api.schema.plain_assignment import NodeAssignmentSpec
from numapin_api.status.policy import CpuPolicyStatus
from numapin_client.cache.chunked_list import ChunkedList
from numapin_client.client import CHUNK_LIMIT, ApiClient, Source
from numapin_client.errors import AlreadyExistsError, GoneError, NotFoundError
from numapin_client.events import NORMAL, WARNING, Event, Reporter, post_event
from numapin_client.resources import (
    CONTROLLER_REVISIONS,
    CPU_POLICIES,
    NODE_ASSIGNMENTS,
    NODE_RESOURCE_TOPOLOGIES,
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Json,
    Key,
    Resource,
)
from numapin_daemon.slices import Slices
from numapin_operator.cluster import PodEvent
from numapin_operator.observe.assignments.printing import printed
from numapin_operator.observe.assignments.view import AssignmentView
from numapin_operator.observe.informers import decode_pod
from numapin_operator.observe.pods.claims import ClaimView
from numapin_operator.observe.records import NodeView, PolicyView
from numapin_operator.observe.resource_slices import DeviceId, Places, PublishedDevices
from numapin_operator.observe.revisions import Revision
from numapin_operator.observe.stores.versioned_cache import Listed
from numapin_operator.placement import PodView

LIST_ATTEMPTS: Final = 5

LIST_CHUNK: Final = 50
"""Objects in one answer to a list: an answer is parsed in one step of the event loop."""

SLICE_CHUNK: Final = 4
"""Of up to 128 devices each."""

MOST_SLICES: Final = 256
"""Of one driver that are read for one node; with more, devices may stay unknown."""


class ApiCluster:
    """The API server, over one client."""

    def __init__(
        self, api: ApiClient, reporter: Reporter, namespace: str = names.NAMESPACE
    ) -> None:
        """Write over this client.

        Args:
            api: an open client.
            reporter: who reports Events.
            namespace: that of the operator, where it stores what it has to remember.
        """
        self._api, self._reporter, self._namespace = api, reporter, namespace

    async def list_policies(self) -> Listed[PolicyView]:
        """All CpuPolicies, as of now; a list that expires midway is started again."""
        for attempt in range(1, LIST_ATTEMPTS + 1):
            try:
                return await self._list_policies_once()
            except GoneError:
                if attempt == LIST_ATTEMPTS:
                    raise
        raise AssertionError("unreachable: the last attempt returns or raises")

    async def read_policies_version(self) -> int:
        """The version that a list would show now, by the shortest list."""
        return int((await self._api.list_chunk(Source(CPU_POLICIES), limit=1)).resource_version)

    async def read_assignment(
        self, name: str, before: AssignmentView | None = None
    ) -> AssignmentView | None:
        """One NodeAssignment, as of now."""
        try:
            body = await self._api.get(NODE_ASSIGNMENTS, Key(name))
        except NotFoundError:
            return None
        return AssignmentView.decode(body, before)

    async def read_node(self, name: str) -> NodeView | None:
        """One Node, as of now."""
        try:
            return NodeView.decode(await self._api.get(NODES, Key(name)))
        except NotFoundError:
            return None

    async def read_pod(self, key: Key) -> PodView | None:
        """One pod, as of now."""
        try:
            return decode_pod(await self._api.get(PODS, key))
        except NotFoundError:
            return None

    async def read_claim(self, key: Key) -> ClaimView | None:
        """One ResourceClaim, as of now."""
        return ClaimView.decode(await self._api.get(RESOURCE_CLAIMS, key))

    async def read_places(self, node: str, devices: Collection[DeviceId]) -> Places:
        """Read the slices of the node; those of no node only for devices that are not in these.

        Each list is of one driver, and the API server has an index of the nodes.
        """
        found: dict[DeviceId, tuple[str, ...]] = {}
        for name in (node, ""):
            missing = [one for one in devices if one not in found]
            if missing:
                selector = f"spec.nodeName={name},spec.driver={missing[0].driver}"
                found |= await self._read_slices(selector, missing)
        return found

    async def create_assignment(
        self, node: NodeView, spec: NodeAssignmentSpec, *, as_lines: bool = False
    ) -> AssignmentView:
        """Create; raises AlreadyExistsError if it exists.

        The Node does not own it: the garbage collector would delete it with a Node that is deleted
        and registered again, while the containers run on.
        """
        wire, form = printed(spec, None, as_lines=as_lines)
        answer = await self._api.create(
            NODE_ASSIGNMENTS, {"metadata": {"name": node.name}, "spec": wire}
        )
        return AssignmentView.decode(answer, None, (wire, spec, form))

    async def replace_spec(
        self,
        before: AssignmentView,
        node: NodeView,
        spec: NodeAssignmentSpec,
        *,
        as_lines: bool = False,
    ) -> AssignmentView:
        """Replace the spec if `before` is current; keeps the status and metadata of others.

        A Node that owns it, by an earlier release, owns it no more.
        """
        wire, form = printed(spec, before, as_lines=as_lines)
        body = {"metadata": {**before.metadata, "name": node.name}, "spec": wire}
        answer = await self._api.update(NODE_ASSIGNMENTS, body)
        return AssignmentView.decode(answer, before, (wire, spec, form))

    async def tell(
        self, before: AssignmentView, told: Mapping[str, object | None]
    ) -> AssignmentView:
        """Change fields of the status if `before` is current; None removes one."""
        metadata = {"uid": before.uid, "resourceVersion": str(before.version)}
        answer = await self._api.merge_patch(
            NODE_ASSIGNMENTS,
            Key(before.name),
            {"metadata": metadata, "status": dict(told)},
            subresource="status",
            field_manager=names.OPERATOR_FIELD_MANAGER,
        )
        return AssignmentView.decode(answer, before)

    async def create_node_object(self, kind: Resource, name: str) -> None:
        """Create it; raises AlreadyExistsError if it exists."""
        await self._api.create(kind, {"metadata": {"name": name}})

    async def delete_node_object(self, kind: Resource, name: str) -> None:
        """Delete it; raises NotFoundError if there is none."""
        await self._api.delete(kind, Key(name))

    async def list_resource_topologies(self) -> Sequence[Json]:
        """List their metadata, of which each has some hundred bytes."""
        label = f"{names.MANAGED_BY_LABEL}={names.MANAGED_BY}"
        source = Source(NODE_RESOURCE_TOPOLOGIES, label_selector=label, metadata_only=True)
        chunks, found = ChunkedList(self._api, source, CHUNK_LIMIT), list[Json]()
        while not chunks.ended:
            found += [item["metadata"] for item in (await chunks.read()).items]
        return found

    async def read_resource_topology(self, name: str) -> Json | None:
        """One, as of now."""
        try:
            return await self._api.get(NODE_RESOURCE_TOPOLOGIES, Key(name))
        except NotFoundError:
            return None

    async def create_resource_topology(self, body: Json) -> Json:
        """Create; raises AlreadyExistsError if it exists."""
        manager = names.OPERATOR_FIELD_MANAGER
        return await self._api.create(NODE_RESOURCE_TOPOLOGIES, body, field_manager=manager)

    async def patch_resource_topology(self, body: Json) -> Json:
        """Patch if it is as known; labels of others stay."""
        manager = names.OPERATOR_FIELD_MANAGER
        key = Key.of(body)
        return await self._api.merge_patch(
            NODE_RESOURCE_TOPOLOGIES, key, body, field_manager=manager
        )

    async def delete_resource_topology(self, name: str, uid: str, version: str) -> None:
        """Delete if it is as known."""
        kind = NODE_RESOURCE_TOPOLOGIES
        await self._api.delete(kind, Key(name), uid=uid, resource_version=version)

    async def delete_assignment(self, before: AssignmentView) -> None:
        """Delete if `before` is current."""
        key, version = Key(before.name), str(before.version)
        await self._api.delete(NODE_ASSIGNMENTS, key, uid=before.uid, resource_version=version)

    async def replace_policy_status(
        self, before: PolicyView, status: CpuPolicyStatus
    ) -> PolicyView:
        """Replace if `before` is current."""
        metadata = {"name": before.name, "uid": before.uid, "resourceVersion": str(before.version)}
        body = {"metadata": metadata, "status": status.to_wire()}
        return PolicyView.decode(await self._api.update(CPU_POLICIES, body, "status"))

    async def create_revision(self, revision: Revision) -> None:
        """Create its ControllerRevision, which the policy owns."""
        await self._api.create(CONTROLLER_REVISIONS, revision.to_object(self._namespace))

    async def delete_revision(self, name: str) -> None:
        """Delete a ControllerRevision of the operator's namespace."""
        await self._api.delete(CONTROLLER_REVISIONS, Key(name, self._namespace))

    async def post_event(self, event: PodEvent) -> None:
        """Post it in the pod's namespace, so that `kubectl describe pod` shows it."""
        regarding = {
            "apiVersion": PODS.api_version,
            "kind": PODS.kind,
            "name": event.pod,
            "namespace": event.namespace,
            "uid": event.uid,
        }
        severity: Literal["Normal", "Warning"] = WARNING if event.is_warning else NORMAL
        placed = Event(severity, event.reason, "Place", event.note, event.is_once)
        try:
            await post_event(self._api, regarding, placed, self._reporter)
        except AlreadyExistsError:
            if not event.is_once:
                raise

    async def evict(self, namespace: str, pod: str, uid: str) -> None:
        """Use the eviction API. Source: Kubernetes, "API-initiated Eviction"."""
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod, "namespace": namespace},
            "deleteOptions": {"preconditions": {"uid": uid}},
        }
        await self._api.create(PODS, body, "eviction")

    async def patch_held(self, pod: Key, patch: dict[str, Any]) -> None:
        """Patch a pod; the patch names the UID and the version that it is for."""
        manager = names.OPERATOR_FIELD_MANAGER
        await self._api.merge_patch(PODS, pod, patch, field_manager=manager)

    async def annotate(
        self, pod: Key, uid: str, text: str | None, name: str = names.CPUS_ANNOTATION
    ) -> None:
        """Patch the annotation alone; the UID is immutable, so another pod is not changed."""
        patch = {"metadata": {"uid": uid, "annotations": {name: text}}}
        manager = names.OPERATOR_FIELD_MANAGER
        await self._api.merge_patch(PODS, pod, patch, field_manager=manager)

    async def _read_slices(self, selector: str, devices: Collection[DeviceId]) -> Places:
        published, slices, count = PublishedDevices(devices), Slices(), 0
        source = Source(RESOURCE_SLICES, field_selector=selector)
        chunks = ChunkedList(self._api, source, SLICE_CHUNK)
        while not chunks.ended and count < MOST_SLICES:
            items = (await chunks.read()).items
            count += len(items)
            for item in items:
                published.take_in(item)
                await slices.rest()
        return published.places

    async def _list_policies_once(self) -> Listed[PolicyView]:
        states: list[PolicyView] = []
        chunks, slices = ChunkedList(self._api, Source(CPU_POLICIES), LIST_CHUNK), Slices()
        while not chunks.ended:
            chunk = await chunks.read()
            for item in chunk.items:
                states.append(PolicyView.decode(item))
                await slices.rest()
        return Listed(tuple(states), int(chunk.resource_version))
