"""A whole cluster as the operator observes it, read in small parts: thousands of nodes fit.

What is read becomes the operator's slim values at once. Only what files may change, and pods with
ResourceClaims, are kept as objects.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from numapin_cli.bundle.reduced import reduced
from numapin_cli.inputs.manifests import WORKLOADS, Manifest
from numapin_cli.inputs.objects import Objects, combined
from numapin_cli.inputs.workloads.planned import ended
from numapin_cli.inputs.workloads.workload import Workload
from numapin_cli.live.node_parts import NodeParts
from numapin_cli.live.observed import Observed
from numapin_cli.live.reader import ALIVE, Reader, manifest
from numapin_client.resources import (
    CPU_POLICIES,
    NAMESPACES,
    NODE_ASSIGNMENTS,
    NODE_REPORTS,
    NODE_TOPOLOGIES,
    NODES,
    PODS,
    Json,
    Resource,
)
from numapin_operator.observe.assignments.report import ReportView, TopologyView
from numapin_operator.observe.assignments.view import AssignmentView
from numapin_operator.observe.pods.parser import parse_stored_pod
from numapin_operator.placement import PodView

T = TypeVar("T")

_POD: Final = "Pod"


class WholeCluster:
    """Reads a cluster once.

    Every method raises `ClientError` if something that the operator observes cannot be read.

    Attributes:
        parts: reads NodeAssignments; has notes of what could not be read.
    """

    def __init__(self, reader: Reader, written: Sequence[Manifest]) -> None:
        """Args: `written` is what people wrote, which is applied to the cluster."""
        self._reader, self._written = reader, written
        self._workloads = [Workload.parse(one) for one in written if one.kind in WORKLOADS]
        self._names = {one.name for one in written if one.kind == _POD}
        self.parts = NodeParts(reader)

    async def read(self) -> tuple[Objects, Observed]:
        """The objects that the files may change, after that, and all others as they are observed.

        Raises:
            CommandError: what people wrote cannot be used.
        """
        read, reader = [], self._reader
        for resource in (CPU_POLICIES, NAMESPACES, NODES):
            read += await reader.all(resource, _keeping(resource))
        listed = await reader.each(PODS, self._pod, field_selector=ALIVE)
        kept = [one for one in listed if isinstance(one, Manifest)]
        pods = [one for one in listed if isinstance(one, PodView)]
        claims = await reader.claims_of(kept)
        nodes = sorted({str(one.content["spec"].get("nodeName") or "") for one in kept} - {""})
        beside = [*claims, *await reader.slices_of(nodes, claims)]
        objects = combined([*read, *kept, *beside], self._written)
        objects = replace(objects, by_kind={_POD: {}, **objects.by_kind})
        gone = _gone(kept, objects)
        return objects, await self._observed(pods, gone)

    def _pod(self, body: Json) -> Manifest | PodView:
        pod = manifest(PODS, body)
        is_changed = pod.name in self._names or any(one.controls(pod) for one in self._workloads)
        view = parse_stored_pod(body)
        return pod if is_changed or any(one.claims for one in view.containers) else view

    async def _observed(self, pods: Sequence[PodView], gone: Sequence[Manifest]) -> Observed:
        """All that is not among the objects.

        Args:
            pods: the pods that nobody wrote.
            gone: the pods that end by what people wrote, without which their nodes report.
        """
        apart = {str(one.content["spec"].get("nodeName")) for one in gone}
        reports = await self._of_nodes(NODE_REPORTS, ReportView.decode, apart)
        topologies = await self._of_nodes(NODE_TOPOLOGIES, TopologyView.decode, apart)
        assignments = await self._of_nodes(NODE_ASSIGNMENTS, AssignmentView.decode, apart)
        whole = [await self.parts.one(name) for name in sorted(apart)]
        changed = ended(filter(None, whole), gone)
        assignments += [AssignmentView.decode(one.content) for one in changed]
        return Observed(assignments, reports, topologies, pods)

    async def _of_nodes(
        self, resource: Resource, made: Callable[[Json], T], apart: Collection[str]
    ) -> list[T]:
        """What is made of the objects of all nodes but some; none of a kind that is not there."""

        def each(body: Json) -> T | None:
            return None if body["metadata"]["name"] in apart else made(body)

        listed = await self.parts.every(resource, each)
        return [one for one in listed if one is not None]


def _keeping(resource: Resource) -> Callable[[Json], Json]:
    """What is kept of an object: of a policy all, of others what decisions use."""
    return dict if resource is CPU_POLICIES else lambda body: reduced(resource.kind, body)


def _gone(kept: Iterable[Manifest], objects: Objects) -> list[Manifest]:
    """The pods of the cluster that are no longer among the objects, and had been bound."""
    left = {one.metadata.get("uid") for one in objects.of(_POD).values()}
    bound = (one for one in kept if one.kind == _POD and one.content["spec"].get("nodeName"))
    return [one for one in bound if one.metadata.get("uid") not in left]
