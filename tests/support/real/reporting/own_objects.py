"""The objects of a node under test: what the operator does with them, and every write."""

import json
from collections.abc import Mapping
from typing import Any

from numapin_api import names
from numapin_api.forms.spec import OPERATOR_STATUS
from numapin_client.client import Source, connect
from numapin_client.login.kubeconfig import kubeconfig_login
from numapin_client.resources import NODE_ASSIGNMENTS, NODE_REPORTS, NODE_TOPOLOGIES, Key, Resource
from numapin_client.transport.connection import Request
from numapin_lab.controlplane.servers import ControlPlane
from support.real.enforcer_node import PATH, Node

Json = dict[str, Any]


def line(uid: str, cpus: str, since: int, **more: str) -> str:
    """A line of a container `main` that owns its CPUs."""
    keys = {"cpus": cpus, **more, "since": str(since), "uid": uid}
    return f"default/pod-{uid[:8]} main {' '.join(f'{key}={one}' for key, one in keys.items())}"


def spec_of_lines(*lines: str, shared: str = "0-1", since: int = 1) -> Json:
    """A spec for the two CPUs that every machine of ours has."""
    policy = {"name": "test", "generation": 1, "since": since}
    pools = {"reservedCPUs": "0", "sharedCPUs": shared}
    return {"policy": policy, "pools": pools, "assigned": list(lines)}


class OwnObjects:
    """The objects beside the NodeAssignment."""

    def __init__(self, node: Node, plane: ControlPlane) -> None:
        self._node, self._plane = node, plane

    def create(self, *resources: Resource) -> None:
        """Create both, or those of these kinds."""
        for one in resources or (NODE_REPORTS, NODE_TOPOLOGIES):
            body = {"apiVersion": one.api_version, "kind": one.kind}
            named = body | {"metadata": {"name": self._node.name}}
            self._plane.api.create(one.collection_path(), named)

    def delete(self, *resources: Resource) -> None:
        """Delete both, or those of these kinds."""
        for one in resources or (NODE_REPORTS, NODE_TOPOLOGIES):
            self._plane.api.request("DELETE", one.path(Key(self._node.name)))

    def replace(self, spec: Mapping[str, Any]) -> Json:
        """Write a spec of either form, without a trace of the one before."""
        path, kind = f"{PATH}/{self._node.name}", {"apiVersion": names.API_VERSION}
        found = self._node.object if self._plane.api.exists(path) else None
        body = {**kind, "kind": "NodeAssignment", "spec": dict(spec)}
        if found is None:
            named = body | {"metadata": {"name": self._node.name}}
            return dict(self._plane.api.create(PATH, named))
        version = {"name": self._node.name, "resourceVersion": found["metadata"]["resourceVersion"]}
        return dict(self._plane.api.request("PUT", path, body | {"metadata": version}))

    @property
    def report(self) -> Json:
        """The status of the NodeReport; empty if there is none."""
        return self._status(NODE_REPORTS)

    @property
    def topology(self) -> Json:
        """The status of the NodeTopology; empty if there is none."""
        return self._status(NODE_TOPOLOGIES)

    async def edit(self, resource: Resource, status: Mapping[str, Any]) -> None:
        """Change fields of a status as another writer does; None removes one."""
        async with connect(kubeconfig_login(str(self._plane.kubeconfig))) as api:
            key, patch = Key(self._node.name), {"status": dict(status)}
            await api.merge_patch(resource, key, patch, subresource="status")

    def observes(self, generation: int) -> bool:
        """Whether the report is about this generation of the NodeAssignment that there is."""
        found = self._plane.api.get(NODE_ASSIGNMENTS.path(Key(self._node.name)))
        seen = {"uid": found["metadata"]["uid"], "generation": generation}
        return bool(self.report.get("observed") == seen)

    def has_exclusive(self, generation: int = 1) -> bool:
        """Whether CPU 1 is reported exclusive, and all lines of the generation in force."""
        exclusive = self.report.get("pools", {}).get("exclusive")
        return self.observes(generation) and exclusive == "1" and self.is_fine()

    def is_fine(self) -> bool:
        """Whether the report says that all is in force."""
        return self.ready()[0] == "True"

    @property
    def assignment_status(self) -> Json:
        """The status of the NodeAssignment, by whoever wrote it."""
        return self._status(NODE_ASSIGNMENTS)

    @property
    def old_status(self) -> Json:
        """What an enforcer has written into the NodeAssignment, but for defaults."""
        found = self.assignment_status
        return {key: one for key, one in found.items() if key not in OPERATOR_STATUS and one}

    def ready(self) -> tuple[str, str, str]:
        """Status, reason and message of Ready; empty without a report."""
        for one in self.report.get("conditions", ()):
            if one["type"] == "Ready":
                return one["status"], one["reason"], one["message"]
        return "", "", ""

    def _status(self, resource: Resource) -> Json:
        path = resource.path(Key(self._node.name))
        if not self._plane.api.exists(path):
            return {}
        return dict(self._plane.api.get(path).get("status") or {})

    def version(self) -> str:
        """The resourceVersion of the NodeReport."""
        found = self._plane.api.get(NODE_REPORTS.path(Key(self._node.name)))
        return str(found["metadata"]["resourceVersion"])

    async def reports_after(self, version: str) -> list[Json]:
        """The status of each version after that one, by a watch that begins there."""
        source = Source(NODE_REPORTS, field_selector=f"metadata.name={self._node.name}")
        asked = {"watch": "true", "resourceVersion": version, "timeoutSeconds": "2"}
        async with connect(kubeconfig_login(str(self._plane.kubeconfig))) as api:
            request = Request("GET", source.path, source.params | asked)
            async with api.connection.stream(request) as response:
                lines = (await response.read()).splitlines()
        return [json.loads(one)["object"]["status"] for one in lines]
