"""The objects that an explanation needs, from files or from an API server."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from numapin_api.names import CPU_POLICY_KIND, NODE_ASSIGNMENT_KIND
from numapin_cli.asked.glance import Glance, best_nodes
from numapin_cli.asked.gone_pods import Told, told_about
from numapin_cli.asked.target import EXPLAINED, NODE, POD, POLICY, Target
from numapin_cli.inputs.manifests import Manifest, section
from numapin_cli.inputs.objects import Objects, combined
from numapin_cli.inputs.workloads.rollouts import first_step
from numapin_cli.inputs.workloads.workload import Workload
from numapin_cli.live.node_parts import NodeParts
from numapin_cli.live.reader import Reader, together
from numapin_cli.near_names import did_you_mean, near_names
from numapin_cli.subcommand import CommandError
from numapin_client.errors import ForbiddenError
from numapin_client.resources import (
    CPU_POLICIES,
    NAMESPACES,
    NODE_ASSIGNMENTS,
    NODES,
    PODS,
    Key,
)

DEFAULT_NAMESPACE: Final = "default"


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked about, and all that the answer depends on.

    Attributes:
        kind: `pod`, `node` or `policy`.
        manifest: the object.
        name: its name.
        objects: the cluster, or the part of it that matters.
        others: other nodes that can be tried, the one with most free CPUs first.
        nodes: how many nodes there are besides.
        assumed: what the objects were changed to, as a sentence; empty if they were not.
        forbidden: why there is nothing but the object: NodeAssignments may not be read; else empty.
        told: what numapin has told about a pod that is gone; nothing else is known then.
        alike: pods with names like that of one that is gone.
    """

    kind: str
    manifest: Manifest
    name: str
    objects: Objects
    others: tuple[str, ...] = ()
    nodes: int = 0
    assumed: str = ""
    forbidden: str = ""
    told: tuple[Told, ...] = ()
    alike: tuple[str, ...] = ()

    def once_created_by(self, workload: Workload) -> "Asked":
        """The question when a workload's controller creates the pod, the first of a roll-out."""
        step = first_step(workload, self.manifest, list(self.objects.of("Pod").values()))
        return replace(self, objects=self.objects.without(step.ended), assumed=step.assumed)


class FromFiles:
    """Answers from the objects of files."""

    def __init__(self, objects: Objects) -> None:
        self.objects = objects

    def asked(self, target: Target, most: int) -> Asked:
        """Find what is asked about.

        Raises:
            CommandError: it is not there, or the name is that of several objects.
        """
        objects, namespace = self.objects, target.namespace or DEFAULT_NAMESPACE
        named = {
            POD: objects.of("Pod").get(f"{namespace}/{target.name}"),
            NODE: objects.of("Node").get(target.name),
            POLICY: objects.of(CPU_POLICY_KIND).get(target.name),
        }
        known = {
            POD: [Key(one.content["metadata"]["name"], _space(one)) for one in self._pods()],
            NODE: [Key(name) for name in objects.of("Node")],
            POLICY: [Key(name) for name in objects.of(CPU_POLICY_KIND)],
        }
        kind, manifest = chosen(target, namespace, named, known.__getitem__)
        node = node_of(manifest) if kind == POD else target.name
        others = _best_nodes(objects, node)
        return Asked(kind, manifest, target.name, objects, tuple(others[:most]), len(others))

    def for_pod(self, pod: Manifest, node: str, most: int) -> Asked:
        """What the answer about a pod of a file depends on."""
        objects = self.objects
        others = _best_nodes(objects, node)
        return Asked(POD, pod, pod.name, objects, tuple(others[:most]), len(others))

    def _pods(self) -> Iterable[Manifest]:
        return self.objects.of("Pod").values()


class FromServer:
    """Answers from an API server."""

    def __init__(self, reader: Reader, namespace: str) -> None:
        """Args: `namespace` is that of the login; empty if it has none."""
        self._reader, self.namespace = reader, namespace or DEFAULT_NAMESPACE
        self._parts = NodeParts(reader)
        self._seen: tuple[Sequence[Glance], Collection[str]] | None = None

    @property
    def notes(self) -> Iterable[str]:
        """What could not be read, and why, a sentence each."""
        return self._parts.notes.values()

    async def asked(self, target: Target, most: int, node: str = "") -> Asked:
        """Find what is asked about, and read what the answer depends on, `node` in any case.

        Raises:
            ClientError: something may not be read, or the server does not answer.
            CommandError: it is not there, or the name is that of several objects.
        """
        reader, namespace = self._reader, target.namespace or self.namespace
        kinds = [target.kind] if target.kind else [POD, NODE, POLICY]
        keys = {POD: Key(target.name, namespace), NODE: Key(target.name), POLICY: Key(target.name)}
        read = reader.one if target.kind else reader.one_if_allowed
        found = await together(read(_RESOURCES[kind], keys[kind]) for kind in kinds)
        named = dict(zip(kinds, found, strict=True))
        known = dict[str, list[Key]]()
        if not any(named.values()):
            if POD in kinds and (told := await told_about(reader, keys[POD])):
                return await self._gone(keys[POD], told)
            for kind in kinds:
                known[kind] = await reader.names_if_allowed(_RESOURCES[kind])
        kind, manifest = chosen(target, namespace, named, known.__getitem__)
        if kind == POLICY:
            return Asked(kind, manifest, target.name, combined([manifest], []))
        if kind == NODE:
            return await self._around(kind, manifest, target.name, 0)
        return await self.stored_pod(manifest, most, node)

    async def stored_pod(self, pod: Manifest, most: int, node: str = "") -> Asked:
        """Read what the answer about a pod of the server depends on, `node` in any case.

        That is the pod alone if NodeAssignments may not be read.
        """
        try:
            return await self._around(POD, pod, node_of(pod), most, node)
        except ForbiddenError:
            if why := await self._reader.why_forbidden(NODE_ASSIGNMENTS):
                return Asked(POD, pod, pod.name, combined([pod], []), forbidden=why)
            raise

    async def refused(self) -> frozenset[str]:
        """The refused pods of all nodes, as `namespace/name`; none if these may not be read."""
        try:
            glances, _ = await self._glances()
        except ForbiddenError:
            return frozenset()
        return frozenset(name for one in glances for name in one.refused)

    async def _glances(self) -> tuple[Sequence[Glance], Collection[str]]:
        """Each node with a NodeAssignment, and the names of all Nodes; they are read once."""
        if self._seen is None:
            glances = await self._parts.each(lambda one: Glance.of(one.content))
            self._seen = glances, await self._reader.labels(NODES)
        return self._seen

    async def _gone(self, pod: Key, told: Sequence[Told]) -> Asked:
        """A pod that does not exist any more, and pods with names like its."""
        metadata = {"name": pod.name, "namespace": pod.namespace}
        manifest = Manifest("Events", "Pod", {"metadata": metadata})
        listed = await self._reader.names_if_allowed(PODS, pod.namespace)
        alike = near_names(pod.name, (key.name for key in listed))
        nothing = combined([], [])
        return Asked(POD, manifest, manifest.name, nothing, told=tuple(told), alike=tuple(alike))

    async def for_pod(self, pod: Manifest, node: str, most: int) -> Asked:
        """Read what the answer about a pod of a file depends on."""
        return await self._around(POD, pod, node, most)

    async def _around(
        self, kind: str, manifest: Manifest, node: str, most: int, named: str = ""
    ) -> Asked:
        """The node of a pod, or a node, the named one, and others to try; with all pods."""
        reader = self._reader
        is_all = most or named or not node
        all_others = best_nodes(*await self._glances(), node) if is_all else []
        others = tuple(all_others[:most])
        wanted = sorted({node, named, *others} - {""})
        assignments = await together(map(self._parts.one, wanted))
        nodes = await reader.named_nodes(wanted)
        policies, spaces = await together(map(reader.all, (CPU_POLICIES, NAMESPACES)))
        pods = await reader.pods_on(wanted)
        own = [manifest] if kind == POD and manifest.stored else []
        claims = await reader.claims_of([*pods, *own])
        kept = [*filter(None, assignments), *nodes]
        slices = await reader.slices_of(wanted, claims)
        objects = combined([*kept, *policies, *spaces, *pods, *claims, *slices], [])
        return Asked(kind, manifest, manifest.name, objects, others, len(all_others))


_RESOURCES: Final = {POD: PODS, NODE: NODES, POLICY: CPU_POLICIES}


def _best_nodes(objects: Objects, besides: str) -> list[str]:
    glances = (Glance.of(one.content) for one in objects.of(NODE_ASSIGNMENT_KIND).values())
    return best_nodes(glances, objects.of("Node"), besides)


def chosen(
    target: Target,
    namespace: str,
    named: Mapping[str, Manifest | None],
    known: Callable[[str], Sequence[Key]],
) -> tuple[str, Manifest]:
    """The one object of a name.

    Args:
        target: what was asked for.
        namespace: where pods were looked for.
        named: what was found, by kind.
        known: the names that there are, by kind; called only if nothing was found.

    Raises:
        CommandError: there is none, or there are several.
    """
    kinds = [target.kind] if target.kind else list(named)
    found = [(kind, one) for kind in kinds if (one := named[kind]) is not None]
    if len(found) == 1:
        return found[0]
    name = target.name
    if found:
        forms = " or ".join(f"{kind}/{name}" for kind, _ in found)
        raise CommandError(f"{name} is the name of several objects; give {forms}")
    there = {kind: known(kind) for kind in kinds}
    elsewhere = [key for key in there.get(POD, ()) if key.name == name]
    if elsewhere:
        spaces = ", ".join(sorted({key.namespace for key in elsewhere}))
        raise CommandError(
            f"there is no pod {name} in namespace {namespace}, but in {spaces}; add -n"
        )
    raise CommandError(_nothing(target, namespace, kinds, there))


def _nothing(
    target: Target, namespace: str, kinds: Sequence[str], there: Mapping[str, Sequence[Key]]
) -> str:
    what = " or ".join(filter(None, (", ".join(kinds[:-1]), kinds[-1])))
    where = f" in namespace {namespace}" if POD in kinds else ""
    spaces = {key.namespace for key in there.get(POD, ())}
    if target.namespace and spaces and target.namespace not in spaces:
        advice = did_you_mean(target.namespace, {*spaces, *near_names(target.namespace, EXPLAINED)})
        return f"there is no {what} {target.name}{where}, which has no pods; {advice}"
    names = [key.name for keys in there.values() for key in keys if _is_near(key, namespace)]
    return f"there is no {what} {target.name}{where}; {did_you_mean(target.name, names)}"


def _is_near(key: Key, namespace: str) -> bool:
    return key.namespace in {"", namespace}


def node_of(pod: Manifest) -> str:
    """The node to which a pod is bound; empty if it is bound to none."""
    return str(section(pod.content, "spec").get("nodeName") or "")


def _space(pod: Manifest) -> str:
    return str(pod.metadata.get("namespace") or DEFAULT_NAMESPACE)
