"""What the operator reads and writes, whatever the API server is. Does no I/O."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from numapin_api import names
from numapin_api.schema.plain_assignment import NodeAssignmentSpec
from numapin_api.status.policy import CpuPolicyStatus
from numapin_client.resources import Json, Key, Resource
from numapin_operator.observe.assignments.view import AssignmentView
from numapin_operator.observe.pods.claims import ClaimView
from numapin_operator.observe.records import NodeView, PolicyView
from numapin_operator.observe.resource_slices import DeviceId, Places
from numapin_operator.observe.revisions import Revision
from numapin_operator.observe.stores.versioned_cache import Listed
from numapin_operator.placement import PodView


@dataclass(frozen=True, slots=True)
class PodEvent:
    """An Event about a pod; it warns, or only informs; perhaps once for this pod and reason."""

    namespace: str
    pod: str
    uid: str
    reason: str
    note: str
    is_warning: bool = True
    is_once: bool = False


class Cluster(Protocol):
    """The API server as the operator uses it.

    Every method raises a subclass of `numapin_client.errors.ClientError` when it fails. A write
    that was planned on a stale state raises ConflictError, AlreadyExistsError or NotFoundError, and
    changes nothing.
    """

    async def list_policies(self) -> Listed[PolicyView]:
        """All CpuPolicies."""

    async def read_policies_version(self) -> int:
        """The version that a list would show now; an older one means that etcd was restored."""

    async def read_assignment(
        self, name: str, before: AssignmentView | None = None
    ) -> AssignmentView | None:
        """One NodeAssignment; None if it does not exist. `before` is an earlier state of it."""

    async def read_node(self, name: str) -> NodeView | None:
        """One Node; None if it does not exist."""

    async def read_pod(self, key: Key) -> PodView | None:
        """One pod; None if it does not exist."""

    async def read_claim(self, key: Key) -> ClaimView | None:
        """One ResourceClaim; None if nothing is allocated for it.

        Raises NotFoundError too: the claim is gone, or the API server has no such kind.
        """

    async def read_places(self, node: str, devices: Collection[DeviceId]) -> Places:
        """Where devices of one driver are, those of which something is known.

        Raises NotFoundError if the API server has no such kind.
        """

    async def create_assignment(
        self, node: NodeView, spec: NodeAssignmentSpec, *, as_lines: bool = False
    ) -> AssignmentView:
        """Create a node's NodeAssignment; with lines if its enforcer reads them."""

    async def replace_spec(
        self,
        before: AssignmentView,
        node: NodeView,
        spec: NodeAssignmentSpec,
        *,
        as_lines: bool = False,
    ) -> AssignmentView:
        """Replace the whole spec of a NodeAssignment that is still as in `before`."""

    async def tell(
        self, before: AssignmentView, told: Mapping[str, object | None]
    ) -> AssignmentView:
        """Change fields of the status of a NodeAssignment that is still as in `before`."""

    async def create_node_object(self, kind: Resource, name: str) -> None:
        """Create the empty NodeReport or NodeTopology of a node."""

    async def delete_node_object(self, kind: Resource, name: str) -> None:
        """Delete the NodeReport or NodeTopology of a node."""

    async def list_resource_topologies(self) -> Sequence[Json]:
        """The metadata of the NodeResourceTopologies with our label.

        Raises NotFoundError too: the API server has no such kind.
        """

    async def read_resource_topology(self, name: str) -> Json | None:
        """One NodeResourceTopology; None if there is none, or no such kind."""

    async def create_resource_topology(self, body: Json) -> Json:
        """Create one; raises NotFoundError if the API server has no such kind."""

    async def patch_resource_topology(self, body: Json) -> Json:
        """Change the fields in `body` of one that still has its UID and resourceVersion."""

    async def delete_resource_topology(self, name: str, uid: str, version: str) -> None:
        """Delete one that still has this UID and resourceVersion."""

    async def delete_assignment(self, before: AssignmentView) -> None:
        """Delete a NodeAssignment that is still as in `before`."""

    async def replace_policy_status(
        self, before: PolicyView, status: CpuPolicyStatus
    ) -> PolicyView:
        """Replace the status of a CpuPolicy that is still as in `before`."""

    async def create_revision(self, revision: Revision) -> None:
        """Store a generation of a policy; raises AlreadyExistsError if its name is taken."""

    async def delete_revision(self, name: str) -> None:
        """Delete a stored generation."""

    async def post_event(self, event: PodEvent) -> None:
        """Post an Event about a pod; a second one that is posted once is left out."""

    async def evict(self, namespace: str, pod: str, uid: str) -> None:
        """Evict a pod if it still has that UID; a disruption budget may refuse it."""

    async def patch_held(self, pod: Key, patch: dict[str, Any]) -> None:
        """Open a held pod's gate, if it is still as it was observed.

        Raises InvalidError too: its affinity cannot be narrowed so.
        """

    async def annotate(
        self, pod: Key, uid: str, text: str | None, name: str = names.CPUS_ANNOTATION
    ) -> None:
        """Write an annotation of a pod, if it still has that UID; None removes it.

        Raises InvalidError too: another pod has its name.
        """
