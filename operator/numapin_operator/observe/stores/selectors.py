"""What a policy demands of the labels of nodes. Does no I/O."""

from collections.abc import Iterable
from typing import NamedTuple

from numapin_api.cpupolicy import CpuPolicySpec
from numapin_api.meta.matching import ABSENCE, Labels, holds, selects
from numapin_api.meta.selectors import LabelSelector, LabelSelectorRequirement


class Demand(NamedTuple):
    """One demand on the labels of a node, as `LabelSelectorRequirement` has it."""

    key: str
    operator: str
    values: frozenset[str]

    @property
    def is_absence(self) -> bool:
        """Whether nodes without the label satisfy it."""
        return self.operator in ABSENCE

    def matches(self, labels: Labels) -> bool:
        """Whether labels satisfy it."""
        return holds(self, labels)


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
