"""The pods of a workload of the cluster, those first that were refused."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from numapin_api import names
from numapin_api.names import NODE_ASSIGNMENT_KIND
from numapin_api.quantity import plural
from numapin_cli.asked.glance import Glance
from numapin_cli.asked.objects import DEFAULT_NAMESPACE, Asked, FromFiles, FromServer, node_of
from numapin_cli.asked.target import WORKLOADS, Target
from numapin_cli.inputs.manifests import Manifest, section
from numapin_cli.inputs.objects import combined
from numapin_cli.inputs.workloads.workload import Workload, controller_of
from numapin_cli.live.reader import ALIVE, Reader, manifest
from numapin_cli.near_names import did_you_mean
from numapin_cli.subcommand import CommandError
from numapin_client.resources import PODS, WORKLOAD_RESOURCES, Json, Key


@dataclass(frozen=True, slots=True)
class Wanted:
    """How much of a workload is explained.

    Attributes:
        pods: at most so many of its pods.
        nodes: so many other nodes are tried for each.
        node: the only node to ask about; empty for all.
    """

    pods: int
    nodes: int
    node: str


@dataclass(frozen=True, slots=True)
class WorkloadAsked:
    """A workload as questions about its pods, and a line that says which pods these are."""

    asked: Sequence[Asked]
    note: str


async def on_server(
    source: FromServer, reader: Reader, target: Target, wanted: Wanted
) -> WorkloadAsked:
    """The questions about a workload of an API server.

    Raises:
        ClientError: something may not be read, or the server does not answer.
        CommandError: there is no such workload, or it creates no pod.
    """
    namespace = target.namespace or source.namespace
    is_its = _controlled_by(target, namespace)

    def kept(body: Json) -> Manifest | None:
        pod = manifest(PODS, body)
        return pod if is_its(pod) else None

    listed = await reader.each(PODS, kept, namespace=namespace, field_selector=ALIVE)
    pods = [one for one in listed if one is not None]
    if not pods:
        return await _once_created(source, reader, target, wanted)
    chosen, note = _chosen(target, namespace, pods, await source.refused(), wanted.pods)
    return WorkloadAsked(
        [await source.stored_pod(one, wanted.nodes, wanted.node) for one in chosen], note
    )


def in_files(source: FromFiles, target: Target, wanted: Wanted) -> WorkloadAsked:
    """The same, of the objects of files.

    Raises:
        CommandError: they have no pod of it.
    """
    namespace = target.namespace or DEFAULT_NAMESPACE
    is_its, objects = _controlled_by(target, namespace), source.objects
    pods = [one for one in objects.of("Pod").values() if is_its(one)]
    if not pods:
        known = set(map(_workload_of, objects.of("Pod").values())) - {""}
        named = f"{target.kind} {target.name} in namespace {namespace}"
        raise CommandError(f"there is no pod of {named}; {did_you_mean(target.name, known)}")
    glances = (Glance.of(one.content) for one in objects.of(NODE_ASSIGNMENT_KIND).values())
    refused = {name for one in glances for name in one.refused}
    chosen, note = _chosen(target, namespace, pods, refused, wanted.pods)
    asked = [source.for_pod(one, wanted.node or node_of(one), wanted.nodes) for one in chosen]
    return WorkloadAsked(asked, note)


def _controlled_by(target: Target, namespace: str) -> Callable[[Manifest], bool]:
    """Whether a pod was created for the workload, by its controller and its labels."""
    kind = WORKLOADS[target.kind]
    content = {"kind": kind, "metadata": {"name": target.name, "namespace": namespace}}
    return Workload(Manifest("", kind, content), kind, target.name, {}).controls


def _chosen(
    target: Target, namespace: str, pods: Iterable[Manifest], refused: Collection[str], most: int
) -> tuple[Sequence[Manifest], str]:
    """The pods that are explained, and a line that counts all of them."""

    def is_refused(pod: Manifest) -> bool:
        says_so = names.REFUSED_ANNOTATION in section(pod.metadata, "annotations")
        return says_so or pod.name in refused

    ordered = sorted(pods, key=lambda one: (not is_refused(one), bool(node_of(one)), one.name))
    chosen = ordered[:most]
    counts = {
        "refused": sum(map(is_refused, ordered)),
        "bound to no node": sum(not node_of(one) for one in ordered),
    }
    said = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
    note = f"{WORKLOADS[target.kind]} {namespace}/{target.name}: {plural(len(ordered), 'pod')}"
    note += f", {said}" if said else ""
    if len(chosen) < len(ordered):
        note += f"; explained: {', '.join(one.name for one in chosen)} (--pods explains more)"
    return chosen, note


def _workload_of(pod: Manifest) -> str:
    """The name of the workload of a pod; empty if it has none."""
    kind, name = controller_of(pod)
    return name.rpartition("-")[0] or name if kind == "ReplicaSet" else name


async def _once_created(
    source: FromServer, reader: Reader, target: Target, wanted: Wanted
) -> WorkloadAsked:
    """The question about a pod as the workload would create it."""
    namespace = target.namespace or source.namespace
    resource: Final = WORKLOAD_RESOURCES[WORKLOADS[target.kind]]
    found = await reader.one(resource, Key(target.name, namespace))
    if found is None:
        known = [key.name for key in await reader.names_if_allowed(resource, namespace)]
        raise CommandError(
            f"there is no {target.kind} {target.name} in namespace {namespace};"
            f" {did_you_mean(target.name, known)}"
        )
    workload = Workload.parse(found)
    if why := workload.why_none():
        raise CommandError(f"{workload.title} has no pods: it {why}")
    (pod,) = combined([], [next(workload.pods({}))]).of("Pod").values()
    asked = await source.for_pod(pod, wanted.node, wanted.nodes)
    return WorkloadAsked([asked], f"{workload.title} has no pods yet; explained: {pod.name}")
