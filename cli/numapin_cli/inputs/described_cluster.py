"""The cluster that files describe, as the operator would observe it."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

from numapin_api.cpupolicy import CpuPolicySpec
from numapin_api.names import CPU_POLICY_KIND, NODE_ASSIGNMENT_KIND
from numapin_api.schema.plain_assignment import NodeAssignmentSpec, NodeAssignmentStatus
from numapin_api.topology import Topology
from numapin_cli.inputs.manifests import CLAIM_KIND, SLICE_KIND, Manifest, section
from numapin_cli.inputs.node_labels import selected_labels
from numapin_cli.inputs.objects import Objects
from numapin_cli.live.observed import NOTHING, Observed
from numapin_cli.near_names import did_you_mean
from numapin_cli.subcommand import CommandError
from numapin_client.resources import Key
from numapin_operator.observe.assignments.hardware import Hardware
from numapin_operator.observe.assignments.view import AssignmentView, Reported
from numapin_operator.observe.cache import ClusterState
from numapin_operator.observe.pods.claims import ClaimView, with_claims
from numapin_operator.observe.pods.parser import parse_stored_pod
from numapin_operator.observe.records import NodeView, PolicyView, slim_labels
from numapin_operator.observe.resource_slices import Places, PublishedDevices
from numapin_operator.placement import PodView

_MACHINE: Final = "machine"
"""The name of a node that nobody names."""


@dataclass(frozen=True, slots=True)
class DescribedCluster:
    """What the operator would observe.

    Attributes:
        state: the objects.
        nodes: the nodes that are planned, sorted by name.
        unbound: how many pods are left out because no scheduler has bound them to a node.
    """

    state: ClusterState
    nodes: tuple[str, ...]
    unbound: int


def on_a_machine(objects: Objects, machine: Topology, node: str | None) -> DescribedCluster:
    """One machine, one policy that selects it, and pods, without any cluster.

    Raises:
        CommandError: there is not one policy, or it is not clear which pods are meant.
    """
    policies = list(objects.of(CPU_POLICY_KIND).values())
    if len(policies) != 1:
        sources = ", ".join(manifest.source for manifest in policies)
        raise CommandError(
            f"one {CPU_POLICY_KIND} is needed, {len(policies)} are there"
            + (f" ({sources}); leave one, or give Nodes" if sources else "; add one with -f")
        )
    if assignments := objects.of(NODE_ASSIGNMENT_KIND):
        first = next(iter(assignments.values()))
        raise CommandError(
            f"{first.source}: there is a NodeAssignment and no Node; add the Nodes"
            " (kubectl get nodes,ns,pods,cpupol,nodeasg,nodereports,nodetopologies -A -o yaml)"
        )
    pods = objects.of("Pod")
    name = node or _only_node(pods.values()) or _MACHINE
    chosen = {key: pod for key, pod in pods.items() if _node_of(pod) in {name, ""}}
    if node is not None and not any(_node_of(pod) or not pod.stored for pod in chosen.values()):
        raise CommandError(f"--node {node}: no pod is bound to it; give the name of another node")
    spec = CpuPolicySpec.model_validate(section(policies[0].content, "spec"))
    content = {"metadata": {"name": name, "uid": name, "labels": selected_labels(spec)}}
    given = {**objects.by_kind, "Pod": chosen, "Node": {name: Manifest("", "Node", content)}}
    return _described(Objects(given), machine, name, stored_too=node is None)


def in_a_cluster(
    objects: Objects, machine: Topology | None, node: str | None, more: Observed = NOTHING
) -> DescribedCluster:
    """The Nodes of the files, or one of them.

    Args:
        objects: all that is known, but for what is in `more`.
        machine: the hardware of each node whose enforcer has not reported any.
        node: the only node to plan; None for all.
        more: what else is known.

    Raises:
        CommandError: something is missing without which the operator would decide otherwise.
    """
    nodes = objects.of("Node")
    if node is not None and node not in nodes:
        raise CommandError(f"--node {node}: there is no such Node; {did_you_mean(node, nodes)}")
    if not objects.of(CPU_POLICY_KIND):
        raise CommandError(
            f"no {CPU_POLICY_KIND} is given; add one with -f (kubectl get cpupol -o yaml)"
        )
    default = node or (next(iter(nodes)) if len(nodes) == 1 else "")
    described = _described(objects, machine, default, more=more)
    return described if node is None else replace(described, nodes=(node,))


def observed(objects: Objects) -> ClusterState:
    """What the operator would observe of these objects; pods that no scheduler has bound are not.

    Raises:
        CommandError: something is missing without which the operator would decide otherwise.
    """
    return _described(objects, None, "").state


def _described(
    objects: Objects,
    machine: Topology | None,
    default: str,
    *,
    stored_too: bool = False,
    more: Observed = NOTHING,
) -> DescribedCluster:
    state = ClusterState(lambda *_, **__: None)
    for manifest in objects.of("Node").values():
        state.put_node(NodeView.decode(manifest.content))
    for manifest in objects.of(CPU_POLICY_KIND).values():
        state.put_policy(manifest.content)
    for manifest in objects.of("Namespace").values():
        state.put_namespace(manifest.name, slim_labels(manifest.metadata))
    for report in more.reports:
        state.put_report(report)
    for topology in more.topologies:
        state.put_topology(topology)
    for view in _assignments(objects, machine, state, more.assignments):
        state.put_assignment(view)
    unbound = more.put_pods(state) + _put_pods(state, objects, default, stored_too=stored_too)
    _check_complete(state, objects)
    return DescribedCluster(state, tuple(sorted(state.node_names())), unbound)


def _assignments(
    objects: Objects,
    machine: Topology | None,
    state: ClusterState,
    others: Iterable[AssignmentView],
) -> Iterator[AssignmentView]:
    hardware, known = Hardware(machine, b"") if machine else None, set[str]()
    given = objects.of(NODE_ASSIGNMENT_KIND).values()
    for view in chain((AssignmentView.decode(one.content) for one in given), others):
        known.add(view.name)
        reported = state.with_report(view)
        yield reported if reported.hardware else _with_hardware(reported, hardware)
    for name in state.nodes if hardware else ():
        if name not in known:
            yield unwritten_assignment(name, hardware)


def _with_hardware(view: AssignmentView, hardware: Hardware | None) -> AssignmentView:
    """An assignment on which no enforcer has reported; what it does not say runs nowhere."""
    if hardware is None:
        return view
    own = replace(view.own, hardware=hardware, has_running=True, is_there=True)
    return replace(view, own=own).reported(None, None)


def unwritten_assignment(name: str, hardware: Hardware | None) -> AssignmentView:
    """The assignment of a node on which numapin has not done anything; version 0 marks it.

    Nothing runs there that an enforcer would have to report first.
    """
    return AssignmentView(
        name=name,
        uid="",
        version=0,
        generation=0,
        owner_uid=None,
        deleting=False,
        spec=NodeAssignmentSpec(),
        status=NodeAssignmentStatus(),
        hardware=hardware,
        metadata={"name": name},
        has_running=True,
        own=Reported(has_running=True, hardware=hardware, is_there=True),
    )


def _put_pods(state: ClusterState, objects: Objects, default: str, *, stored_too: bool) -> int:
    """Have the state observe the pods; returns how many are left out because they are not bound."""
    unbound, known = 0, dict[str, Manifest]()
    for number, (key, manifest) in enumerate(objects.of("Pod").items()):
        pod = parse_stored_pod(manifest.content)
        if pod.terminal:
            continue  # the operator does not watch pods that have ended
        first = known.setdefault(pod.uid, manifest)
        if first is not manifest:
            raise CommandError(
                f"{manifest.source}: pod {manifest.name} has the UID of pod {first.name}"
                f" ({first.source}); remove metadata.uid from what is not in a cluster"
            )
        if not pod.node and manifest.stored and not stored_too:
            unbound += 1
            continue
        bound = _bound(pod, manifest, default, number)
        if bound.node not in state.nodes and not manifest.stored:
            raise CommandError(
                f"{manifest.source}: pod {key}: spec.nodeName: there is no Node {bound.node};"
                " add it (kubectl get nodes -o yaml), or leave spec.nodeName out"
            )
        state.put_pod(Key(key), _with_claims(bound, manifest, objects))
    return unbound


def pod_with_claims(manifest: Manifest, objects: Objects) -> PodView:
    """One pod, bound to a node or not, with what its ResourceClaims among the objects say.

    Raises:
        CommandError: a claim of it is not given.
    """
    return _with_claims(parse_stored_pod(manifest.content), manifest, objects)


def _with_claims(pod: PodView, manifest: Manifest, objects: Objects) -> PodView:
    """The pod with what its ResourceClaims say; one that is not allocated counts as unknown."""
    claims, given = dict[str, ClaimView](), objects.of(CLAIM_KIND)
    for name in sorted({ref.claim for container in pod.containers for ref in container.claims}):
        claim = given.get(f"{pod.namespace}/{name}")
        if claim is None:
            raise CommandError(
                f"{manifest.source}: pod {pod.name} uses ResourceClaim {name}, which is not given;"
                " add it (kubectl get resourceclaims -A -o yaml)"
            )
        if view := ClaimView.decode(claim.content):
            claims[name] = view
    return with_claims(pod, claims, _places(pod.node, claims, objects))


def _places(node: str, claims: Mapping[str, ClaimView], objects: Objects) -> Places:
    """Where claimed devices are, by the ResourceSlices of a node and those of no node."""
    wanted = [device for view in claims.values() for _, device in view.devices]
    published = PublishedDevices(wanted)
    for one in objects.of(SLICE_KIND).values() if wanted else ():
        spec = one.content.get("spec")
        if isinstance(spec, Mapping) and spec.get("nodeName") in {None, node}:
            published.take_in(one.content)
    return published.places


def _bound(pod: PodView, manifest: Manifest, default: str, number: int) -> PodView:
    """A pod with its node; after all others if it is not known when it was bound."""
    node = pod.node or default
    if not node:
        raise CommandError(
            f"{manifest.source}: pod {manifest.name} is bound to no node; choose with --node, or"
            " set its spec.nodeName"
        )
    return replace(pod, node=node, bound=pod.bound or f"~{number:09}")


def _check_complete(state: ClusterState, objects: Objects) -> None:
    """Raises CommandError if a whole kind is missing that the operator would know."""
    written = (state.assignments[name] for name in state.assignments)
    if "Pod" not in objects.by_kind and any(view.spec.containers for view in written):
        raise CommandError(
            "no Pod is given, although NodeAssignments list containers; add the Pods"
            " (kubectl get nodes,ns,pods,cpupol,nodeasg,nodereports,nodetopologies -A -o yaml)"
        )
    for name in state.nodes:
        for governing in state.policies_of(name)[:1]:
            _check_namespaces(state, name, governing)


def _check_namespaces(state: ClusterState, node: str, governing: PolicyView) -> None:
    if governing.spec.pods.namespace_selector is None:
        return
    for pod in state.pods_on(node):
        if pod.namespace not in state.namespaces:
            raise CommandError(
                f"policy {governing.name} selects namespaces by their labels, and Namespace"
                f" {pod.namespace} of pod {pod.name} is not given; add it (kubectl get ns -o yaml)"
            )


def _only_node(pods: Iterable[Manifest]) -> str:
    """The node that the pods are bound to; empty if none is."""
    nodes = sorted({node for pod in pods if (node := _node_of(pod))})
    if len(nodes) > 1:
        raise CommandError(f"the pods are bound to nodes {', '.join(nodes)}; choose with --node")
    return nodes[0] if nodes else ""


def _node_of(pod: Manifest) -> str:
    return str(section(pod.content, "spec").get("nodeName") or "")
