"""Label selectors: whether labels match, and what a policy demands of nodes. Does no I/O."""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from numapin_api.cpupolicy import CpuPolicySpec
from numapin_api.meta.selectors import LabelSelector, LabelSelectorRequirement

Labels = Mapping[str, str]

_ABSENCE: Final = frozenset({"NotIn", "DoesNotExist"})


class Demand(NamedTuple):
    """One demand on the labels of a node, as `LabelSelectorRequirement` has it."""

    key: str
    operator: str
    values: frozenset[str]

    @property
    def is_absence(self) -> bool:
        """Whether nodes without the label satisfy it."""
        return self.operator in _ABSENCE

    def matches(self, labels: Labels) -> bool:
        """Whether labels satisfy it."""
        return _holds(self, labels)


def selects(selector: LabelSelector | None, labels: Labels) -> bool:
    """Whether labels match; no selector and an empty one match everything.

    Source: Kubernetes, `metav1.LabelSelectorAsSelector`.
    """
    if selector is None:
        return True
    return selector.match_labels.items() <= labels.items() and all(
        _holds(one, labels) for one in selector.match_expressions
    )


def _holds(demand: Demand | LabelSelectorRequirement, labels: Labels) -> bool:
    value = labels.get(demand.key)
    has = value is not None and (not demand.values or value in demand.values)
    return has != (demand.operator in _ABSENCE)


def selects_node(spec: CpuPolicySpec, labels: Labels) -> bool:
    """Whether a policy selects a node with these labels.

    The API server refuses `nodeSelector` beside `nodes`. Where both are there, both must match.
    """
    return spec.node_selector.items() <= labels.items() and selects(spec.nodes, labels)


def demands(spec: CpuPolicySpec) -> frozenset[Demand]:
    """What a policy demands of the labels of nodes; nothing if it selects every node."""
    selector = spec.nodes or LabelSelector()
    return frozenset(
        (
            *_each_label(spec.node_selector.items()),
            *_each_label(selector.match_labels.items()),
            *map(_demand, selector.match_expressions),
        )
    )


def _demand(one: LabelSelectorRequirement) -> Demand:
    return Demand(one.key, one.operator, frozenset(one.values))


def _each_label(labels: Iterable[tuple[str, str]]) -> Iterable[Demand]:
    return (Demand(key, "In", frozenset((value,))) for key, value in labels)
