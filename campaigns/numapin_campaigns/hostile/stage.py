"""The cluster of a hostile run: who is in it, and how an operation is sent.

Everything is sent with the administrator's rights, so that only the API server's validation and
numapin itself stand between an author and the operator.
"""

import asyncio
from collections import Counter
from typing import Any

from numapin_campaigns.hostile.operations import Cast, Operation
from numapin_client.client import ApiClient
from numapin_client.errors import ClientError
from numapin_client.resources import CPU_POLICIES, NAMESPACES, NODES, PODS, Json, Key
from numapin_client.transport.connection import MERGE_PATCH, Request
from numapin_lab.controlplane.node_objects import get_node

LIVE_PODS = 120
"""How many pods of the tenant exist at most; more would only fill the API server's memory."""

POLICIES: dict[str, Json] = {
    "control": {"nodeSelector": {"role": "control"}, "priority": 1000, "reserved": {"count": 2}},
    "others": {"priority": -1000, "reserved": {"count": 2}},
}
"""Policies that stay: one for the control nodes, one for nodes that no other policy selects."""

STRATEGIC_PATCH = "application/strategic-merge-patch+json"


class Stage:
    """Sends operations, and remembers what exists.

    `answers` counts the answers by the kind of operation and the outcome.
    """

    def __init__(self, api: ApiClient, cast: Cast) -> None:
        self.api, self.cast = api, cast
        self.answers: Counter[tuple[str, str]] = Counter()

    async def prepare(self) -> None:
        """Create the nodes, the namespaces and the lasting policies."""
        for role in ("control", "tenant", "evil"):
            for name in getattr(self.cast, role):
                await self.add_node(name, role)
        for name in ("hostile", "quiet"):
            await self.api.create(NAMESPACES, {"metadata": {"name": name}})
        for name, spec in POLICIES.items():
            await self.api.create(CPU_POLICIES, {"metadata": {"name": name}, "spec": spec})

    async def add_node(self, name: str, role: str) -> None:
        """Register a node of 64 CPUs or more."""
        body = await self.api.create(NODES, {"metadata": {"name": name, "labels": {"role": role}}})
        self.cast.node_uids[name] = body["metadata"]["uid"]
        amounts = {"cpu": "64", "memory": "64Gi", "pods": "110"}
        status = {"status": {"capacity": amounts, "allocatable": amounts}}
        await self.api.merge_patch(NODES, Key(name), status, subresource="status")

    async def send(self, operation: Operation) -> str:
        """Send one request; the outcome in a word or a sentence."""
        try:
            answer = await self._send(operation)
        except ClientError as error:
            outcome = type(error).__name__
            self.answers[operation.what, outcome] += 1
            return f"{outcome}: {str(error)[:300]}"
        self._remember(operation, answer)
        self.answers[operation.what, "ok"] += 1
        return "ok"

    async def _send(self, operation: Operation) -> Json:
        resource, key, body = operation.resource, operation.key, operation.body
        if operation.verb == "create":
            if resource is PODS and len(self.cast.pods) > LIVE_PODS:
                await self.force_delete(min(self.cast.pods))
            return await self.api.create(resource, body, operation.subresource)
        path = resource.path(key, operation.subresource)
        if operation.verb == "delete":
            options = {"kind": "DeleteOptions", "apiVersion": "v1", **body}
            return await self.api.connection.ask(Request("DELETE", path, body=options))
        if operation.verb == "replace":
            return await self.api.update(resource, await self.api.get(resource, key) | body)
        kind = STRATEGIC_PATCH if resource is PODS else MERGE_PATCH
        return await self.api.connection.ask(Request("PATCH", path, None, body, kind))

    def _remember(self, operation: Operation, answer: Json) -> None:
        resource, key = operation.resource, operation.key
        if resource is PODS and operation.verb == "create" and not operation.subresource:
            self.cast.pods[key] = answer["metadata"]["uid"]
        elif resource is PODS and operation.verb == "delete":
            if "deletionTimestamp" not in (answer.get("metadata") or {}):
                self.cast.pods.pop(key, None)
        elif resource is CPU_POLICIES and operation.verb == "create":
            self.cast.policies.add(key.name)
        elif resource is CPU_POLICIES and operation.verb == "delete":
            self.cast.policies.discard(key.name)
        elif resource is NODES and operation.verb == "create":
            self.cast.node_uids[key.name] = answer["metadata"]["uid"]

    async def force_delete(self, key: Key) -> None:
        """A pod goes at once, whatever holds it."""
        self.cast.pods.pop(key, None)
        patch = {"metadata": {"finalizers": None}}
        options: dict[str, Any] = {"kind": "DeleteOptions", "apiVersion": "v1"}
        body = options | {"gracePeriodSeconds": 0}
        for request in (
            Request("PATCH", PODS.path(key), None, patch, MERGE_PATCH),
            Request("DELETE", PODS.path(key), body=body),
        ):
            try:
                await self.api.connection.ask(request)
            except ClientError:
                continue

    async def assignment(self, node: str) -> Json:
        """A NodeAssignment as v1alpha1 has it, or nothing."""
        try:
            return await get_node(self.api, node) or {}
        except (ClientError, ValueError):
            return {}

    async def until_planned(self, nodes: list[str], seconds: float) -> bool:
        """Wait until these nodes have pools; false if they do not in time."""
        for _ in range(int(seconds)):
            found = [await self.assignment(node) for node in nodes]
            if all((one.get("spec") or {}).get("pools") for one in found):
                return True
            await asyncio.sleep(1)
        return False
