"""The labels that a policy demands of nodes: some that satisfy it, and those that a node lacks."""

from collections.abc import Iterator, Mapping

from numapin_api.cpupolicy import CpuPolicySpec
from numapin_operator.observe.stores.selectors import Demand, demands


def selected_labels(spec: CpuPolicySpec) -> dict[str, str]:
    """Labels of a node that the policy selects, if any are: its demands may exclude each other."""
    excluded = {
        (one.key, value) for one in demands(spec) if one.operator == "NotIn" for value in one.values
    }
    labels: dict[str, str] = {}
    for one in sorted(demands(spec), key=_most_exact_first):
        if not one.is_absence:
            fitting = (value for value in sorted(one.values) if (one.key, value) not in excluded)
            labels.setdefault(one.key, next(fitting, ""))
    return labels


def _most_exact_first(demand: Demand) -> tuple[bool, int, str]:
    return demand.operator != "In", len(demand.values), demand.key


def unmet_demands(spec: CpuPolicySpec, labels: Mapping[str, str]) -> Iterator[str]:
    """Which demands of the policy a node does not meet, each with what the node has."""
    for one in sorted(demands(spec)):
        if not one.matches(labels):
            yield f"{_text(one)} (the node has {labels.get(one.key, 'no such label')})"


def _text(demand: Demand) -> str:
    """A demand as kubectl writes selectors. Source: Kubernetes, "Labels and Selectors"."""
    values = sorted(demand.values)
    match demand.operator:
        case "In" if len(values) == 1:
            return f"{demand.key}={values[0]}"
        case "In" | "NotIn":
            return f"{demand.key} {demand.operator.lower()} ({','.join(values)})"
        case "Exists":
            return demand.key
        case _:
            return f"!{demand.key}"
