"""Pods that wait for a node on a real API server: who creates them, and who binds them."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from numapin_api import names
from numapin_client.errors import NotFoundError
from numapin_client.resources import NAMESPACES, NODES, PODS, Json, Key
from support.real.operators.operator_process import until
from support.real.operators.operator_scenes import has, plan
from support.real.operators.operator_world import RealWorld
from support.values.operator import pod_body

HOLD: Json = {"reserved": {"count": 2}, "onUnsatisfiable": "Hold"}


class HeldScene:
    """A namespace that has opted in, and its pods.

    With `sets_gates` the API server sets their gates; else their template has them.
    """

    def __init__(self, world: RealWorld, *, sets_gates: bool = True) -> None:
        self.world, self.namespace, self.sets_gates = world, world.name("ns"), sets_gates

    async def opt_in(self, labels: Mapping[str, str] | None = None) -> None:
        """Make the namespace; by default with the label that opts in."""
        labels = {names.HOLD_LABEL: names.HOLD_ENABLED} if labels is None else labels
        body = {"metadata": {"name": self.namespace, "labels": dict(labels)}}
        await self.world._make(NAMESPACES, body)
        account = {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": "default", "namespace": self.namespace},
        }
        kubectl = self.world.plane.kubectl
        await asyncio.to_thread(kubectl, "apply", "-f", "-", text=json.dumps(account))

    async def node(self, spec: Json | None = None) -> str:
        """A ready node whose policy holds pods."""
        node = await plan(self.world, HOLD | (spec or {}))
        await self.untaint(node)
        return node

    async def another_node(self) -> str:
        """A second node of the same policy, planned and ready."""
        name = (await self.world.add_node()).name
        await until(lambda: self.world.spec(name))
        await self.world.enforce(name)
        await until(lambda: has(self.world, name, "pools"))
        await self.world.enforce(name)
        await self.untaint(name)
        return name

    async def untaint(self, node: str) -> None:
        """Remove what the API server has put on a new Node until its kubelet is ready."""
        await self.world.admin.merge_patch(NODES, Key(node), {"spec": {"taints": None}})

    async def add(self, name: str, cpu: str = "2", **spec: Any) -> str:
        """Create a Guaranteed pod that no scheduler has bound; its UID."""
        body = pod_body(name, cpu, node="")
        body["metadata"] = {"name": name, "namespace": self.namespace}
        body["spec"].pop("nodeName", None)
        template = {} if self.sets_gates else {"schedulingGates": [{"name": names.HOLD_GATE}]}
        body["spec"] |= {"nodeSelector": {"mark": self.world.mark}} | template | spec
        body.pop("status", None)
        made = await self.world._make(PODS, body)
        return str(made["metadata"]["uid"])

    async def pod(self, name: str) -> Json:
        """A pod as it is; empty if it is gone."""
        try:
            return await self.world.admin.get(PODS, Key(name, self.namespace))
        except NotFoundError:
            return {}

    async def is_gated(self, name: str) -> bool:
        """Whether numapin's gate is there."""
        gates = (await self.pod(name))["spec"].get("schedulingGates") or ()
        return any(one["name"] == names.HOLD_GATE for one in gates)

    async def is_open(self, name: str) -> bool:
        """Whether it is not."""
        return not await self.is_gated(name)

    async def node_of(self, name: str) -> str:
        """The node that the affinity of a pod names; empty if it names none."""
        affinity = (await self.pod(name))["spec"].get("affinity") or {}
        required = affinity.get("nodeAffinity", {}).get(
            "requiredDuringSchedulingIgnoredDuringExecution", {}
        )
        for term in required.get("nodeSelectorTerms") or ():
            for one in term.get("matchFields") or ():
                return str(one["values"][0])
        return ""

    async def text(self, name: str) -> str:
        """What a pod says about why it waits."""
        annotations = (await self.pod(name))["metadata"].get("annotations") or {}
        return str(annotations.get(names.HELD_ANNOTATION, ""))

    async def bind(self, name: str, node: str) -> None:
        """Bind a pod, as a scheduler does."""
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": name, "namespace": self.namespace},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        path = f"{PODS.path(Key(name, self.namespace))}/binding"
        await asyncio.to_thread(self.world.plane.api.request, "POST", path, body)

    async def delete(self, name: str) -> None:
        """Delete a pod at once."""
        path = PODS.path(Key(name, self.namespace))
        options = {"gracePeriodSeconds": 0, "kind": "DeleteOptions"}
        await asyncio.to_thread(self.world.plane.api.request, "DELETE", path, options)

    async def lines(self, node: str) -> dict[str, str]:
        """Each pod's CPUs in a node's assignment, by the pod's name."""
        containers = (await self.world.spec(node)).get("containers") or []
        return {one["pod"]: one["cpus"] for one in containers if one["namespace"] == self.namespace}
