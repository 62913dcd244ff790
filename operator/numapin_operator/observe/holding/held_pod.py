"""A pod that no node has yet, and what the scheduler looks at. Does no I/O."""

from collections.abc import Callable, Container, Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from numapin_api import names
from numapin_operator.observe.holding.node_rules import REQUIRED, NodeRules, required_terms
from numapin_operator.observe.node_status import json_object, json_objects
from numapin_operator.observe.pods.annotation import held_annotation
from numapin_operator.placement import HUGEPAGES_PREFIX, PodView

Json = Mapping[str, Any]

LAST: Final = "9999-12-31T23:59:59Z"
"""When a pod counts as bound that is not: whatever waits on a node waits longer."""

_COUNTED: Final = ("cpu", "memory")


@dataclass(frozen=True, slots=True)
class HeldPod:
    """A pod that is not bound, and whose gate or affinity is ours.

    Attributes:
        pod: what it asks for; it counts as accepted, and as bound last.
        created: RFC 3339.
        version: its resourceVersion.
        is_gated: whether our gate is there.
        other_gates: the gates of others.
        rules: on which nodes it may run.
        unjudged: the field by which the scheduler may refuse a node that suits it; empty if none.
        pinned: the only node that its affinity allows by name; empty if there is none.
        told: what its annotation says, as a mark; see `held_annotation`.
    """

    pod: PodView
    created: str
    version: str
    is_gated: bool
    other_gates: tuple[str, ...]
    rules: NodeRules
    unjudged: str = ""
    pinned: str = ""
    told: str = ""
    terms: tuple[Json, ...] | None = field(default=None, repr=False, compare=False)

    @property
    def uid(self) -> str:
        """The pod's UID."""
        return self.pod.uid

    @property
    def order(self) -> tuple[int, str, str, str]:
        """Sort key: the higher priority first, then the older pod, then by name."""
        return -self.pod.origin.priority, self.created, self.pod.namespace, self.pod.name

    @property
    def shape(self) -> Hashable:
        """Equal for pods that fit on the same nodes, their labels and namespace aside."""
        pod = self.pod
        return pod.containers, pod.pod_level, pod.qos, pod.problem, self.rules

    def opened_for(self, node: str | None) -> dict[str, Any]:
        """The merge patch that removes our gate, and allows one node alone; None: as it is."""
        spec: dict[str, Any] = {
            "schedulingGates": [{"name": one} for one in self.other_gates] or None
        }
        if node is not None:
            terms = [_pinned_term(term, node) for term in self.terms or ({"matchFields": []},)]
            spec["affinity"] = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}
        metadata = {
            "uid": self.uid,
            "resourceVersion": self.version,
            "annotations": {names.HELD_ANNOTATION: None},
        }
        return {"metadata": metadata, "spec": spec}


def held_pod(
    body: Json, decode: Callable[[], PodView], known: Container[str] = ()
) -> HeldPod | None:
    """A pod of the API server; None if neither its gate nor its affinity can be ours.

    Args:
        body: the pod, which is not bound.
        decode: decodes it.
        known: UIDs of pods that are ours, also if their gate was opened by hand.
    """
    metadata = json_object(body, "metadata")
    spec = json_object(body, "spec")
    gates = [str(one.get("name")) for one in json_objects(spec.get("schedulingGates"))]
    terms = required_terms(spec)
    pinned = _pinned_node(terms)
    if names.HOLD_GATE not in gates and not pinned and metadata.get("uid") not in known:
        return None
    return HeldPod(
        pod=replace(decode(), bound=LAST, checked=True),
        created=str(metadata.get("creationTimestamp") or ""),
        version=str(metadata.get("resourceVersion") or ""),
        is_gated=names.HOLD_GATE in gates,
        other_gates=tuple(one for one in gates if one != names.HOLD_GATE),
        rules=NodeRules.parse(spec),
        unjudged=next(_unjudged(spec), ""),
        pinned=pinned,
        told=held_annotation(metadata),
        terms=terms,
    )


def _pinned_term(term: Json, node: str) -> Json:
    """A term that allows one node of those that it allowed; an empty one allows none."""
    if term == {}:
        return term
    ours = {"key": "metadata.name", "operator": "In", "values": [node]}
    return {**term, "matchFields": [*json_objects(term.get("matchFields")), ours]}


def _pinned_node(terms: tuple[Json, ...] | None) -> str:
    """The one node that every term names."""
    named = [_names_of(term) for term in terms or ()]
    if not named or any(len(one) != 1 for one in named) or len(set().union(*named)) != 1:
        return ""
    return next(iter(named[0]))


def _names_of(term: Json) -> set[str]:
    found: set[str] | None = None
    for one in json_objects(term.get("matchFields")):
        if one.get("key") == "metadata.name" and one.get("operator") == "In":
            values = set(map(str, one.get("values") or ()))
            found = values if found is None else found & values
    return found or set()


def _unjudged(spec: Json) -> Iterator[str]:
    """What the scheduler looks at and we do not."""
    for kind in ("podAffinity", "podAntiAffinity"):
        if json_object(json_object(spec, "affinity"), kind).get(REQUIRED):
            yield f"spec.affinity.{kind}"
    for one in json_objects(spec.get("topologySpreadConstraints")):
        if one.get("whenUnsatisfiable") != "ScheduleAnyway":
            yield "spec.topologySpreadConstraints"
    for one in json_objects(spec.get("volumes")):
        if "persistentVolumeClaim" in one or "ephemeral" in one:
            yield "spec.volumes"
    if spec.get("resourceClaims"):
        yield "spec.resourceClaims"
    for key in ("containers", "initContainers"):
        for one in json_objects(spec.get(key)):
            yield from _unjudged_of_container(one, f"spec.{key}[]")


def _unjudged_of_container(container: Json, field: str) -> Iterator[str]:
    if any(port.get("hostPort") for port in json_objects(container.get("ports"))):
        yield f"{field}.ports[].hostPort"
    resources = json_object(container, "resources")
    for name in (*json_object(resources, "requests"), *json_object(resources, "limits")):
        if name not in _COUNTED and not name.startswith(HUGEPAGES_PREFIX):
            yield f"{field}.resources: {name:.80}"
