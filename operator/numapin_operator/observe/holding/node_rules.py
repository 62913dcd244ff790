"""On which nodes a pod may run, by its selector, its required affinity and its tolerations.

Source: Kubernetes v1.36, component-helpers, `nodeaffinity` and `corev1`. Does no I/O.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from numapin_operator.observe.node_status import json_object, json_objects

Json = Mapping[str, Any]
Labels = Mapping[str, str]

REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
"""The key of an affinity that must hold."""

UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"
_REPELLING: Final = frozenset({"NoSchedule", "NoExecute"})


class Taint(NamedTuple):
    """A taint of a node that keeps pods away."""

    key: str
    value: str
    effect: str


class Toleration(NamedTuple):
    """A taint that a pod tolerates; an empty key or effect stands for any."""

    key: str
    operator: str
    value: str
    effect: str

    def tolerates(self, taint: Taint) -> bool:
        """Whether it is about this taint."""
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        if self.operator == "Exists":
            return True
        return self.operator in ("", "Equal") and self.key != "" and self.value == taint.value


class Requirement(NamedTuple):
    """One expression of a term."""

    key: str
    operator: str
    values: tuple[str, ...]

    def holds(self, labels: Labels) -> bool:
        """Whether labels satisfy it; one that cannot be read is not satisfied."""
        value = labels.get(self.key)
        match self.operator:
            case "In":
                return value in self.values
            case "NotIn":
                return value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case "Gt" | "Lt":
                return _compares(value, self.operator, self.values)
        return False


class Term(NamedTuple):
    """Expressions about a node's labels and about its name, all of which must hold."""

    labels: tuple[Requirement, ...]
    fields: tuple[Requirement, ...]

    def matches(self, name: str, labels: Labels) -> bool:
        """Whether a node satisfies it; a term without expressions matches none."""
        if not self.labels and not self.fields:
            return False
        return all(one.holds(labels) for one in self.labels) and all(
            one.holds({"metadata.name": name}) for one in self.fields
        )


@dataclass(frozen=True, slots=True)
class NodeRules:
    """What a pod demands of a node.

    Attributes:
        labels: those of `nodeSelector`.
        terms: those of the required node affinity, of which one must match; None if there is none.
        tolerations: which taints it tolerates.
    """

    labels: tuple[tuple[str, str], ...] = ()
    terms: tuple[Term, ...] | None = None
    tolerations: tuple[Toleration, ...] = ()

    @classmethod
    def parse(cls, spec: Json) -> "NodeRules":
        """Read them from a pod's spec."""
        labels, terms = json_object(spec, "nodeSelector").items(), required_terms(spec)
        # Those with a time are for pods that run: they would be evicted after it.
        tolerations = json_objects(spec.get("tolerations"))
        return cls(
            tuple(sorted((str(key), str(value)) for key, value in labels)),
            None if terms is None else tuple(map(_term, terms)),
            tuple(Toleration(*_texts(one, Toleration._fields)) for one in tolerations),
        )

    def allow(self, name: str, labels: Labels) -> bool:
        """Whether selector and affinity allow a node."""
        if any(labels.get(key) != value for key, value in self.labels):
            return False
        return self.terms is None or any(one.matches(name, labels) for one in self.terms)

    def repelled_by(self, taints: Iterable[Taint]) -> Taint | None:
        """The first taint that keeps the pod away; None if none does."""
        for taint in taints:
            if not any(one.tolerates(taint) for one in self.tolerations):
                return taint
        return None


def required_terms(spec: Json) -> tuple[Json, ...] | None:
    """The terms of a pod's required node affinity, of which one must match; None if none is set."""
    required = json_object(json_object(spec, "affinity"), "nodeAffinity").get(REQUIRED)
    if not isinstance(required, Mapping) or not required:
        return None
    return tuple(json_objects(required.get("nodeSelectorTerms")))


def taints_of(spec: Json) -> tuple[Taint, ...]:
    """The taints of a Node that keep pods away, with that of `unschedulable`."""
    found = [
        Taint(*_texts(one, Taint._fields))
        for one in json_objects(spec.get("taints"))
        if one.get("effect") in _REPELLING
    ]
    if spec.get("unschedulable") and all(one.key != UNSCHEDULABLE for one in found):
        found.append(Taint(UNSCHEDULABLE, "", "NoSchedule"))
    return tuple(found)


def _texts(parent: Json, keys: Iterable[str]) -> Iterator[str]:
    return (str(parent.get(key) or "") for key in keys)


def _term(term: Json) -> Term:
    return Term(_requirements(term, "matchExpressions"), _requirements(term, "matchFields"))


def _requirements(term: Json, key: str) -> tuple[Requirement, ...]:
    return tuple(
        Requirement(str(one.get("key")), str(one.get("operator")), _values(one.get("values")))
        for one in json_objects(term.get(key))
    )


def _values(listed: object) -> tuple[str, ...]:
    return tuple(map(str, listed)) if isinstance(listed, list) else ()


def _compares(value: str | None, operator: str, values: tuple[str, ...]) -> bool:
    """Whether a label is a number above or below another one."""
    try:
        mine, other = int(value or ""), int(values[0])
    except (ValueError, IndexError):
        return False
    return mine > other if operator == "Gt" else mine < other
