"""Users, kubelets and enforcers on a real API server, for operators."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from numapin_api import names
from numapin_client.client import ApiClient, Source, connect
from numapin_client.errors import ConflictError, NotFoundError, TooManyRequestsError
from numapin_client.login.kubeconfig import kubeconfig_login
from numapin_client.resources import (
    CPU_POLICIES,
    EVENTS,
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
from numapin_lab.controlplane.api import AnswerError
from numapin_lab.controlplane.node_objects import get_node
from numapin_lab.controlplane.servers import ControlPlane
from numapin_lab.controlplane.service_accounts import ServiceAccount, log_in
from numapin_operator.api_server import ApiCluster
from numapin_operator.cluster import PodEvent
from numapin_operator.observe.records import NodeView
from support.fakes.cluster_contract import FOREIGN_OWNER
from support.real.audit import granted
from support.real.waiting import eventually
from support.values.operator import enforcer_status, pod_body

COMPONENTS = Path(__file__).parents[4] / "manifests" / "components"

REVIEWS = Resource(
    "authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False
)
BUDGETS = Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", namespaced=True)


class RealWorld:
    """Users, kubelets and enforcers on a real API server; all that it makes is gone at its end.

    `mark` is a label that this test's nodes carry and no others.
    """

    def __init__(self, plane: ControlPlane, folder: Path, admin: ApiClient) -> None:
        self.plane, self.folder, self.admin = plane, folder, admin
        self.mark = f"test-{secrets.token_hex(4)}"
        self.stack = AsyncExitStack()
        self.cluster: ApiCluster
        self._enforcers: dict[str, ApiClient] = {}
        self._made: list[tuple[Any, Key]] = []

    @property
    def operator_kubeconfig(self) -> Path:
        """A login with the operator's rights and no more."""
        account = ServiceAccount(names.NAMESPACE, names.OPERATOR_SERVICE_ACCOUNT)
        return log_in(self.plane, account, self.folder / "operator")

    @asynccontextmanager
    async def component(self, name: str, *, without: str = "") -> AsyncIterator[None]:
        """The rights that a component of the manifests gives the operator; one file may be left."""
        found = sorted((COMPONENTS / name).glob("[!k]*.yaml"))
        files = [f"--filename={one}" for one in found if one.name != without]
        try:
            await asyncio.to_thread(self.plane.kubectl, "apply", *files)
            for group, resource, verb in granted(f"components/{name}/rbac.yaml"):
                await eventually(partial(self._may, verb, group, resource))
            yield
        finally:
            await asyncio.to_thread(self.plane.kubectl, "delete", "--ignore-not-found", *files)

    async def serves(self, kind: str, version: str) -> bool:
        """Whether the API server has a kind, such as "Lease" of "coordination.k8s.io/v1"."""
        found = await asyncio.to_thread(self.plane.api.get, f"/apis/{version}")
        return any(one["kind"] == kind for one in found["resources"])

    async def _may(self, verb: str, group: str, resource: str) -> bool:
        """Whether the API server has seen that the operator has a right."""
        main, _, sub = resource.partition("/")
        about = {"verb": verb, "group": group, "resource": main, "subresource": sub}
        user = f"system:serviceaccount:{names.NAMESPACE}:{names.OPERATOR_SERVICE_ACCOUNT}"
        spec = {"user": user, "resourceAttributes": about | {"namespace": "default"}}
        answer = await self.admin.create(REVIEWS, {"metadata": {}, "spec": spec})
        return bool(answer["status"]["allowed"])

    def name(self, what: str) -> str:
        """A name of this test's own."""
        return f"{self.mark}-{what}"

    async def add_node(self, what: str = "", cpus: int = 8) -> NodeView:
        """A Node, as a kubelet registers it."""
        name = self.name(what or secrets.token_hex(4))
        await self._make(NODES, {"metadata": {"name": name, "labels": {"mark": self.mark}}})
        amounts = {"cpu": str(cpus), "memory": "8Gi", "pods": "250"}
        status = {"status": {"capacity": amounts, "allocatable": amounts}}
        body = await self.admin.merge_patch(NODES, Key(name), status, subresource="status")
        return NodeView.decode(body)

    async def put_policy(self, spec: Json, what: str = "") -> str:
        """Create or edit a policy for this test's nodes."""
        name = self.name(what or secrets.token_hex(4))
        body = {
            "metadata": {"name": name},
            "spec": {"nodeSelector": {"mark": self.mark}, "releaseDelay": "0s"} | spec,
        }
        while True:
            try:
                before = await self.admin.get(CPU_POLICIES, Key(name))
                await self.admin.update(CPU_POLICIES, before | {"spec": body["spec"]})
            except NotFoundError:
                await self._make(CPU_POLICIES, body)
            except ConflictError:
                continue  # the operator wrote the status in between
            return name

    async def delete_policy(self, name: str) -> None:
        """Delete a policy."""
        await self.admin.delete(CPU_POLICIES, Key(name))

    async def policy_status(self, name: str) -> Json:
        """What the operator says of a policy."""
        status: Json = (await self.admin.get(CPU_POLICIES, Key(name))).get("status") or {}
        return status

    async def add_owner(self, node: str) -> None:
        """A user adds an owner of a node's assignment."""
        patch = {"metadata": {"ownerReferences": [FOREIGN_OWNER]}}
        await self.admin.merge_patch(NODE_ASSIGNMENTS, Key(node), patch)

    async def add_pod(
        self, node: str, what: str = "", cpu: str = "2", claim: str = "", device: str = ""
    ) -> PodEvent:
        """A Guaranteed pod that a scheduler has bound to a node.

        Its container uses `claim`, and requests one `device`.
        """
        body = pod_body(self.name(what or secrets.token_hex(4)), cpu, node=node)
        if device:
            body["spec"]["containers"][0]["resources"]["limits"][device] = "1"
            body["spec"]["containers"][0]["resources"]["requests"][device] = "1"
        if claim:
            body["spec"]["resourceClaims"] = [{"name": "own", "resourceClaimName": claim}]
            body["spec"]["containers"][0]["resources"]["claims"] = [{"name": "own"}]
        del body["metadata"]["uid"], body["metadata"]["creationTimestamp"]
        made = await self._make(PODS, body)
        uid, name = made["metadata"]["uid"], made["metadata"]["name"]
        return PodEvent("default", name, uid, "NotEnoughCPUs", "wanted 4 CPUs, 2 free: 6-7")

    async def add_claim(self, what: str = "", driver: str = "dra.cpu") -> Key:
        """A ResourceClaim for one device of a driver; `allocate` gives it one."""
        device = {"deviceClassName": driver, "count": 1}
        metadata = {"name": self.name(what or secrets.token_hex(4)), "namespace": "default"}
        spec = {"devices": {"requests": [{"name": "one", "exactly": device}]}}
        return Key.of(await self._make(RESOURCE_CLAIMS, {"metadata": metadata, "spec": spec}))

    async def allocate(self, claim: Key, driver: str = "dra.cpu") -> str:
        """Give a claim a device, as a scheduler does; returns the claim's UID."""
        device = {"request": "one", "driver": driver, "pool": "node", "device": "cpudev002"}
        status = {"allocation": {"devices": {"results": [device]}}}
        made = await self.admin.merge_patch(
            RESOURCE_CLAIMS, claim, {"status": status}, subresource="status"
        )
        return str(made["metadata"]["uid"])

    async def publish(
        self, node: str, pool: Json, attributes: Json, driver: str = "gpu.example"
    ) -> None:
        """A ResourceSlice with the device that `allocate` gives; of all nodes if it names none."""
        devices = [{"name": "cpudev002", "attributes": attributes}]
        where = {"nodeName": node} if node else {"allNodes": True}
        whole = {"name": "node", "generation": 1, "resourceSliceCount": 1} | pool
        spec = {"driver": driver, "pool": whole, "devices": devices} | where
        metadata = {"name": self.name(secrets.token_hex(4))}
        await self._make(RESOURCE_SLICES, {"metadata": metadata, "spec": spec})

    async def block_evictions(self, pod: PodEvent) -> None:
        """Cover a pod that runs by a budget that allows no eviction, as its controller would."""
        running = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        await self.admin.merge_patch(
            PODS, Key(pod.pod, pod.namespace), {"status": running}, subresource="status"
        )
        metadata = {"name": f"{pod.pod}-budget", "namespace": pod.namespace}
        spec = {"minAvailable": 1, "selector": {}}
        made = await self._make(BUDGETS, {"metadata": metadata, "spec": spec})
        healthy = {"currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1}
        status = healthy | {"disruptionsAllowed": 0, "observedGeneration": 1}
        await self.admin.merge_patch(
            BUDGETS, Key.of(made), {"status": status}, subresource="status"
        )

    async def delete_pod(self, pod: PodEvent) -> None:
        """A pod that is gone from the API, whether its containers have ended or not."""
        key = Key(pod.pod, pod.namespace)
        path = PODS.path(key)
        await asyncio.to_thread(
            self.plane.api.request,
            "DELETE",
            path,
            {"gracePeriodSeconds": 0, "kind": "DeleteOptions"},
        )

    async def report(self, node: str, status: Json) -> None:
        """Write a status as that node's enforcer, with its rights and no more."""
        client = self._enforcers.get(node)
        if client is None:
            account = ServiceAccount(names.NAMESPACE, names.ENFORCER_SERVICE_ACCOUNT, node)
            kubeconfig = await asyncio.to_thread(log_in, self.plane, account, self.folder / node)
            login = kubeconfig_login(str(kubeconfig))
            client = self._enforcers[node] = await self.stack.enter_async_context(connect(login))
        await client.merge_patch(
            NODE_ASSIGNMENTS, Key(node), {"status": status}, subresource="status"
        )

    async def enforce(self, node: str, *running: str, **others: Any) -> None:
        """Report that all of the present spec is in force."""
        assignment = await self.assignment(node)
        generation = assignment["metadata"]["generation"]
        await self.report(node, enforcer_status(generation, running=running, **others))

    async def assignment(self, node: str) -> Json:
        """A node's NodeAssignment as v1alpha1 has it, with what its enforcer reports.

        Empty where there is none.
        """
        return await get_node(self.admin, node) or {}

    async def spec(self, node: str) -> Json:
        """What the operator wants on a node."""
        spec: Json = (await self.assignment(node)).get("spec") or {}
        return spec

    async def held(self, node: str) -> dict[str, str]:
        """Each pod's CPUs, by the pod's name without this test's mark."""
        containers = (await self.spec(node)).get("containers") or []
        return {one["pod"].removeprefix(f"{self.mark}-"): one["cpus"] for one in containers}

    async def pod_is_deleted(self, pod: PodEvent) -> bool:
        """Whether a pod is gone or being deleted."""
        try:
            found = await self.admin.get(PODS, Key(pod.pod, pod.namespace))
        except NotFoundError:
            return True
        return "deletionTimestamp" in found["metadata"]

    async def event_notes(self, pod: PodEvent) -> list[str]:
        """The notes of the Events on a pod."""
        source = Source(EVENTS, pod.namespace, field_selector=f"regarding.name={pod.pod}")
        return [event["note"] for event in (await self.admin.list_chunk(source, limit=0)).items]

    async def clear(self) -> None:
        """Delete what this test made."""
        for resource, key in reversed(self._made):
            try:
                if resource is PODS:
                    await self.delete_pod(PodEvent(key.namespace, key.name, "", "", ""))
                else:
                    await self.admin.delete(resource, key)
            except (NotFoundError, ConflictError):
                continue
            except AnswerError as error:
                if error.status != 404:
                    raise
        for resource in (NODE_ASSIGNMENTS, NODE_REPORTS, NODE_TOPOLOGIES):
            await self._clear(resource)
        await self.stack.aclose()

    async def _clear(self, resource: Resource) -> None:
        """Delete the objects of this test's nodes; again while a CRD is being replaced."""
        while True:
            try:
                for item in (await self.admin.list_chunk(Source(resource), limit=0)).items:
                    if item["metadata"]["name"].startswith(self.mark):
                        await self.admin.delete(resource, Key(item["metadata"]["name"]))
            except TooManyRequestsError:
                await asyncio.sleep(1)
            except NotFoundError:  # the kind is not known, or an operator was quicker
                return
            else:
                return

    async def _make(self, resource: Any, body: Json) -> Json:
        made = await self.admin.create(resource, body)
        self._made.append((resource, Key.of(made)))
        return made
