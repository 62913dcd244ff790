"""The resources that numapin uses, and their paths on the API server. Does no I/O."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias
from urllib.parse import quote

from numapin_api import names

Json: TypeAlias = dict[str, Any]
"""An object as the API server sends it."""


class Key(NamedTuple):
    """The name of an object in its resource; an empty namespace if it is cluster-scoped."""

    name: str
    namespace: str = ""

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> "Key":
        """Read the key from an object's metadata."""
        metadata = body["metadata"]
        return cls(metadata["name"], metadata.get("namespace", ""))

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


@dataclass(frozen=True, slots=True)
class Resource:
    """One resource type of the API.

    Attributes:
        group: API group; empty for the core group.
        version: API version, such as `v1`.
        plural: the name in URLs, such as `pods`.
        kind: the name in objects, such as `Pod`.
        namespaced: whether its objects are in namespaces.
    """

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool

    @property
    def api_version(self) -> str:
        """The `apiVersion` of its objects."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def collection_path(self, namespace: str = "") -> str:
        """Path of all objects, or of those in one namespace."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        if namespace and self.namespaced:
            return f"{root}/namespaces/{quote(namespace, safe='')}/{self.plural}"
        return f"{root}/{self.plural}"

    def path(self, key: Key, subresource: str = "") -> str:
        """Path of one object, or of a subresource of it such as `status`.

        Raises:
            ValueError: the name is empty, or the namespace does not match the resource. An empty
                name would make the path of an object that of the collection.
        """
        if not key.name:
            raise ValueError(f"a {self.kind} needs a name")
        if self.namespaced != bool(key.namespace):
            has = "is namespaced" if self.namespaced else "is cluster-scoped"
            raise ValueError(f"{self.kind} {has}, the key is {str(key)!r}")
        path = f"{self.collection_path(key.namespace)}/{quote(key.name, safe='')}"
        return f"{path}/{subresource}" if subresource else path


PODS: Final = Resource("", "v1", "pods", "Pod", namespaced=True)
NODES: Final = Resource("", "v1", "nodes", "Node", namespaced=False)
NAMESPACES: Final = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
EVENTS: Final = Resource("events.k8s.io", "v1", "events", "Event", namespaced=True)
RESOURCE_CLAIMS: Final = Resource(
    "resource.k8s.io", "v1", "resourceclaims", "ResourceClaim", namespaced=True
)
RESOURCE_SLICES: Final = Resource(
    "resource.k8s.io", "v1", "resourceslices", "ResourceSlice", namespaced=False
)
LEASES: Final = Resource("coordination.k8s.io", "v1", "leases", "Lease", namespaced=True)
CONTROLLER_REVISIONS: Final = Resource(
    "apps", "v1", "controllerrevisions", "ControllerRevision", namespaced=True
)
NODE_RESOURCE_TOPOLOGIES: Final = Resource(
    "topology.node.k8s.io",
    "v1alpha2",
    "noderesourcetopologies",
    "NodeResourceTopology",
    namespaced=False,
)


WORKLOAD_RESOURCES: Final = {
    kind: Resource(group, "v1", f"{kind.lower()}s", kind, namespaced=True)
    for group, kinds in (
        ("apps", ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet")),
        ("batch", ("Job", "CronJob")),
    )
    for kind in kinds
}
"""The kinds of Kubernetes whose controllers create pods."""


def _ours(plural: str, kind: str) -> Resource:
    """A kind of numapin's own."""
    return Resource(names.GROUP, names.VERSION, plural, kind, namespaced=False)


CPU_POLICIES: Final = _ours(names.CPU_POLICY_PLURAL, names.CPU_POLICY_KIND)
NODE_ASSIGNMENTS: Final = _ours(names.NODE_ASSIGNMENT_PLURAL, names.NODE_ASSIGNMENT_KIND)
NODE_REPORTS: Final = _ours(names.NODE_REPORT_PLURAL, names.NODE_REPORT_KIND)
NODE_TOPOLOGIES: Final = _ours(names.NODE_TOPOLOGY_PLURAL, names.NODE_TOPOLOGY_KIND)


def encode(body: Mapping[str, Any]) -> bytes:
    """JSON without spaces, as the API server writes it.

    It keeps a part that it does not decode, such as the data of a ControllerRevision, as it was
    sent. A patch of another part rewrites it, and spaces that go then count as a change of it.
    """
    return json.dumps(body, separators=(",", ":")).encode()


def is_older(version: str, than: str) -> bool:
    """True if one resourceVersion is older, or if they cannot be compared."""
    if not (version.isdecimal() and than.isdecimal()):
        return True
    return int(version) < int(than)
