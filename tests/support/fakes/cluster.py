"""The API server as the operator uses it, in memory; refuses what the real one refuses."""

from collections.abc import Callable, Collection, Mapping
from itertools import count
from typing import Any

from numapin_api import names
from numapin_api.schema.plain_assignment import NodeAssignmentSpec
from numapin_api.status.policy import CpuPolicyStatus
from numapin_client.errors import (
    AlreadyExistsError,
    ClientError,
    ConflictError,
    InvalidError,
    NotFoundError,
    TooManyRequestsError,
)
from numapin_client.resources import Key, Resource
from numapin_operator.cluster import PodEvent
from numapin_operator.observe.assignments.printing import printed
from numapin_operator.observe.assignments.view import AssignmentView
from numapin_operator.observe.pods.claims import ClaimView
from numapin_operator.observe.records import NodeView, PolicyView
from numapin_operator.observe.resource_slices import DeviceId, Places, PublishedDevices
from numapin_operator.observe.revisions import Revision
from numapin_operator.observe.stores.versioned_cache import Listed
from numapin_operator.placement import PodView

Body = dict[str, Any]

BLOCKED_BY_BUDGET: Body = {
    "reason": "TooManyRequests",
    "message": "Cannot evict pod as it would violate the pod's disruption budget.",
    "details": {
        "causes": [
            {
                "reason": "DisruptionBudget",
                "message": "The disruption budget web needs 1 healthy pods and has 1 currently",
            }
        ]
    },
}
"""What the API server answers to an eviction that a PodDisruptionBudget does not allow."""


class FakeCluster:
    """Implements `Cluster`; `policies`, `assignments` and `revisions` are objects in it, by name.

    `nodes`, `pod_views` and `claims` are what can be read one by one; `claims_read` is what was;
    `slices` are ResourceSlices, `slices_read` the nodes and drivers whose slices were read;
    without `has_claims` the API server is of a Kubernetes that has none.
    `pods` maps namespace and name to a UID; `budget` is how many may be evicted; `annotations` are
    those of pods by which they are told their CPUs, `refused_pods` those by which they are told
    that they were refused, and `annotation_writes` counts the attempts.
    `resource_topologies` are NodeResourceTopologies by name, and `topology_writes` counts writes of
    them; without `has_resource_topologies` there is no such kind.
    `held_patches` are what held pods were patched with.
    `node_objects` are the NodeReports and NodeTopologies, by kind and name; nothing watches them.
    `webhook` changes each spec of an assignment before it is stored.
    `writes` counts writes of policies and assignments; `failures` are raised one by one by the next
    calls.
    """

    def __init__(self) -> None:
        self._versions = count(100)
        self.policies: dict[str, Body] = {}
        self.held_patches: list[tuple[Key, Body]] = []
        self.assignments: dict[str, Body] = {}
        self.revisions: dict[str, Body] = {}
        self.events: list[PodEvent] = []
        self.notices: list[PodEvent] = []
        self.pods: dict[tuple[str, str], str] = {}
        self.nodes: dict[str, NodeView] = {}
        self.pod_views: dict[Key, PodView] = {}
        self.claims: dict[Key, Body] = {}
        self.has_claims = True
        self.claims_read: list[Key] = []
        self.slices: list[Body] = []
        self.slices_read: list[tuple[str, set[str]]] = []
        self.annotations: dict[Key, str] = {}
        self.refused_pods: dict[Key, str] = {}
        self.annotation_writes = 0
        self.node_objects: set[tuple[Resource, str]] = set()
        self.resource_topologies: dict[str, Body] = {}
        self.has_resource_topologies = True
        self.topology_writes = 0
        self.budget = 1000
        self.writes = 0
        self.failures: list[ClientError] = []
        self.webhook: Callable[[Body], Body] = lambda spec: spec
        self.before_write: Callable[[], None] = lambda: None
        self.before_evict: Callable[[], None] = lambda: None

    def put_policy(self, name: str, spec: Body, created: str = "2026-01-01T00:00:00Z") -> Body:
        """Create or edit a policy, as a user does."""
        before = self.policies.get(name)
        generation = before["metadata"]["generation"] + 1 if before else 1
        metadata = self._metadata(name, before) | {"generation": generation}
        metadata.setdefault("creationTimestamp", created)
        body = {"metadata": metadata, "spec": spec}
        self.policies[name] = body | ({"status": before["status"]} if before else {"status": {}})
        return self.policies[name]

    def put_status(self, name: str, status: Body) -> Body:
        """Report on an assignment, as its enforcer does."""
        before = self.assignments[name]
        self.assignments[name] = before | {
            "metadata": before["metadata"] | {"resourceVersion": self._next()},
            "status": status,
        }
        return self.assignments[name]

    async def list_policies(self) -> Listed[PolicyView]:
        self._fail()
        states = tuple(PolicyView.decode(body) for body in self.policies.values())
        return Listed(states, int(self._next()))

    async def read_policies_version(self) -> int:
        self._fail()
        return int(self._next())

    async def read_assignment(
        self, name: str, before: AssignmentView | None = None
    ) -> AssignmentView | None:
        self._fail()
        body = self.assignments.get(name)
        return AssignmentView.decode(body, before) if body else None

    async def read_node(self, name: str) -> NodeView | None:
        self._fail()
        return self.nodes.get(name)

    async def read_pod(self, key: Key) -> PodView | None:
        self._fail()
        return self.pod_views.get(key)

    async def read_claim(self, key: Key) -> ClaimView | None:
        self._fail()
        self.claims_read.append(key)
        if key not in self.claims:
            details = {"name": key.name} if self.has_claims else {}
            raise NotFoundError(f"GET {key}", 404, {"reason": "NotFound", "details": details})
        return ClaimView.decode(self.claims[key])

    async def read_places(self, node: str, devices: Collection[DeviceId]) -> Places:
        self._fail()
        self.slices_read.append((node, {one.driver for one in devices}))
        if not self.has_claims:
            raise NotFoundError("GET resourceslices", 404, {"reason": "NotFound", "details": {}})
        found = PublishedDevices(devices)
        for body in self.slices:
            if body["spec"].get("nodeName", node) == node:
                found.take_in(body)
        return found.places

    async def create_assignment(
        self, node: NodeView, spec: NodeAssignmentSpec, *, as_lines: bool = False
    ) -> AssignmentView:
        self._write()
        if node.name in self.assignments:
            raise AlreadyExistsError(f"POST {node.name}", 409, {"reason": "AlreadyExists"})
        metadata = self._metadata(node.name, None) | {"generation": 1}
        wire = self.webhook(printed(spec, None, as_lines=as_lines)[0])
        self.assignments[node.name] = {"metadata": metadata, "spec": wire}
        return AssignmentView.decode(self.assignments[node.name])

    async def replace_spec(
        self,
        before: AssignmentView,
        node: NodeView,
        spec: NodeAssignmentSpec,
        *,
        as_lines: bool = False,
    ) -> AssignmentView:
        self._write()
        held = self._still(self.assignments, before)
        metadata = held["metadata"] | {"resourceVersion": self._next()}
        metadata |= {
            "name": node.name,
            "ownerReferences": before.metadata.get("ownerReferences", ()),
        }
        wire = self.webhook(printed(spec, before, as_lines=as_lines)[0])
        if wire != held["spec"]:
            metadata["generation"] += 1
        self.assignments[before.name] = held | {"metadata": metadata, "spec": wire}
        return AssignmentView.decode(self.assignments[before.name])

    async def tell(
        self, before: AssignmentView, told: Mapping[str, object | None]
    ) -> AssignmentView:
        self._write()
        held = self._still(self.assignments, before)
        status = {**held.get("status", {}), **told}
        self.assignments[before.name] = held | {
            "metadata": held["metadata"] | {"resourceVersion": self._next()},
            "status": {key: value for key, value in status.items() if value is not None},
        }
        return AssignmentView.decode(self.assignments[before.name], before)

    async def create_node_object(self, kind: Resource, name: str) -> None:
        if (kind, name) in self.node_objects:
            raise AlreadyExistsError(f"POST {name}", 409, {"reason": "AlreadyExists"})
        self.node_objects.add((kind, name))

    async def delete_node_object(self, kind: Resource, name: str) -> None:
        if (kind, name) not in self.node_objects:
            raise NotFoundError(f"DELETE {name}", 404, {"reason": "NotFound"})
        self.node_objects.discard((kind, name))

    async def list_resource_topologies(self) -> list[Body]:
        self._fail()
        ours = (names.MANAGED_BY_LABEL, names.MANAGED_BY)
        listed = [one["metadata"] for one in self._topologies().values()]
        return [one for one in listed if ours in one.get("labels", {}).items()]

    async def read_resource_topology(self, name: str) -> Body | None:
        self._fail()
        return self.resource_topologies.get(name)

    async def create_resource_topology(self, body: Body) -> Body:
        self._fail()
        name = body["metadata"]["name"]
        if name in self._topologies():
            raise AlreadyExistsError(f"POST {name}", 409, {"reason": "AlreadyExists"})
        return self._put_topology(body["metadata"] | self._metadata(name, None), body)

    async def patch_resource_topology(self, body: Body) -> Body:
        self._fail()
        metadata = body["metadata"]
        held = self._same_topology(metadata["name"], metadata["uid"], metadata["resourceVersion"])
        labels = held["metadata"].get("labels", {}) | metadata["labels"]
        metadata = held["metadata"] | metadata | {"labels": labels, "resourceVersion": self._next()}
        return self._put_topology(metadata, held | body)

    async def delete_resource_topology(self, name: str, uid: str, version: str) -> None:
        self._fail()
        self._same_topology(name, uid, version)
        self.topology_writes += 1
        del self._topologies()[name]

    def _topologies(self) -> dict[str, Body]:
        if not self.has_resource_topologies:
            raise NotFoundError("noderesourcetopologies", 404, {})
        return self.resource_topologies

    def _same_topology(self, name: str, uid: str, version: str) -> Body:
        held = self._topologies().get(name)
        if held is None:
            raise NotFoundError(f"PATCH {name}", 404, {"reason": "NotFound"})
        if (held["metadata"]["uid"], held["metadata"]["resourceVersion"]) != (uid, version):
            raise ConflictError(f"PATCH {name}", 409, {"reason": "Conflict"})
        return held

    def _put_topology(self, metadata: Body, body: Body) -> Body:
        self.topology_writes += 1
        managers = [{"manager": names.OPERATOR_FIELD_MANAGER, "fieldsV1": {"f:zones": {}}}]
        made = body | {"metadata": metadata | {"managedFields": managers}}
        self._topologies()[metadata["name"]] = made
        return made

    async def delete_assignment(self, before: AssignmentView) -> None:
        self._write()
        self._still(self.assignments, before)
        del self.assignments[before.name]

    async def replace_policy_status(
        self, before: PolicyView, status: CpuPolicyStatus
    ) -> PolicyView:
        self._write()
        held = self._still(self.policies, before)
        metadata = held["metadata"] | {"resourceVersion": self._next()}
        self.policies[before.name] = held | {"metadata": metadata, "status": status.to_wire()}
        return PolicyView.decode(self.policies[before.name])

    async def create_revision(self, revision: Revision) -> None:
        self._fail()
        if revision.name in self.revisions:
            raise AlreadyExistsError(f"POST {revision.name}", 409, {"reason": "AlreadyExists"})
        self.revisions[revision.name] = revision.to_object("numapin-system")

    async def delete_revision(self, name: str) -> None:
        self._fail()
        if name not in self.revisions:
            raise NotFoundError(f"DELETE {name}", 404, {"reason": "NotFound"})
        del self.revisions[name]

    async def post_event(self, event: PodEvent) -> None:
        self._fail()
        told = self.events if event.is_warning else self.notices
        subjects = {(one.uid, one.reason) for one in told if one.is_once}
        if not event.is_once or (event.uid, event.reason) not in subjects:
            told.append(event)

    async def evict(self, namespace: str, pod: str, uid: str) -> None:
        self._fail()
        self.before_evict()
        found = self.pods.get((namespace, pod))
        if found is None:
            raise NotFoundError(f"POST {pod}/eviction", 404, {"reason": "NotFound"})
        if found != uid:
            raise ConflictError(f"POST {pod}/eviction", 409, {"reason": "Conflict"})
        if self.budget == 0:
            raise TooManyRequestsError(f"POST {pod}/eviction", 429, BLOCKED_BY_BUDGET)
        self.budget -= 1
        del self.pods[namespace, pod]

    async def patch_held(self, pod: Key, patch: dict[str, Any]) -> None:
        self._fail()
        self._check_pod(pod, patch["metadata"]["uid"])
        self.held_patches.append((pod, patch))

    async def annotate(
        self, pod: Key, uid: str, text: str | None, name: str = names.CPUS_ANNOTATION
    ) -> None:
        self._fail()
        self.annotation_writes += 1
        self._check_pod(pod, uid)
        those = self.annotations if name == names.CPUS_ANNOTATION else self.refused_pods
        if text is None:
            those.pop(pod, None)
        else:
            those[pod] = text

    def _check_pod(self, pod: Key, uid: str) -> None:
        """Refuse what is not about the pod that has this name."""
        found = self.pods.get((pod.namespace, pod.name))
        if found is None:
            raise NotFoundError(f"PATCH {pod}", 404, {"reason": "NotFound"})
        if found != uid:
            raise InvalidError(f"PATCH {pod}", 422, {"reason": "Invalid"})

    def _write(self) -> None:
        self._fail()
        self.before_write()
        self.writes += 1

    def _fail(self) -> None:
        if self.failures:
            raise self.failures.pop(0)

    def _still(self, objects: dict[str, Body], before: AssignmentView | PolicyView) -> Body:
        held = objects.get(before.name)
        if held is None:
            raise NotFoundError(f"PUT {before.name}", 404, {"reason": "NotFound"})
        metadata = held["metadata"]
        if (metadata["uid"], metadata["resourceVersion"]) != (before.uid, str(before.version)):
            raise ConflictError(f"PUT {before.name}", 409, {"reason": "Conflict"})
        return held

    def _metadata(self, name: str, before: Body | None) -> Body:
        version = self._next()
        if before:
            metadata: Body = before["metadata"]
            return metadata | {"resourceVersion": version}
        return {"name": name, "uid": f"uid-{name}-{version}", "resourceVersion": version}

    def _next(self) -> str:
        return str(next(self._versions))
