"""Whether labels match a selector, of whichever class it is. Does no I/O."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final, Protocol

Labels = Mapping[str, str]

ABSENCE: Final = frozenset({"NotIn", "DoesNotExist"})
"""The operators that labels without the key satisfy."""


class Requirement(Protocol):
    """One expression of a selector; see `LabelSelectorRequirement`."""

    @property
    def key(self) -> str:
        """The key of the label."""

    @property
    def operator(self) -> str:
        """Its relation to the values."""

    @property
    def values(self) -> Collection[str]:
        """The values."""


class Selector(Protocol):
    """A selector; see `LabelSelector`."""

    @property
    def match_labels(self) -> Mapping[str, str]:
        """Labels that must have these values."""

    @property
    def match_expressions(self) -> Sequence[Requirement]:
        """Expressions that must hold."""


def selects(selector: Selector | None, labels: Labels) -> bool:
    """Whether labels match; no selector and an empty one match everything.

    Source: Kubernetes, `metav1.LabelSelectorAsSelector`.
    """
    if selector is None:
        return True
    return selector.match_labels.items() <= labels.items() and all(
        holds(one, labels) for one in selector.match_expressions
    )


def holds(demand: Requirement, labels: Labels) -> bool:
    """Whether labels satisfy one expression."""
    value = labels.get(demand.key)
    has = value is not None and (not demand.values or value in demand.values)
    return has != (demand.operator in ABSENCE)
