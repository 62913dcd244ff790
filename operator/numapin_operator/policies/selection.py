"""Pure: which policy governs a node, and which pods a policy means."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from numapin_api.cpupolicy import CpuPolicySpec, PodSelection
from numapin_api.selectors import LabelSelector, LabelSelectorRequirement
from numapin_operator.observe.records import PolicyView
from numapin_operator.placement import PodView

Labels = Mapping[str, str]


def rank_policies(policies: Iterable[PolicyView], node_labels: Labels) -> tuple[PolicyView, ...]:
    """The policies that select a node, the one that governs it first.

    The higher priority goes first, then the older, then the name. A policy being deleted selects
    nothing.
    """
    selecting = (
        policy
        for policy in policies
        if not policy.leaving and policy.spec.node_selector.items() <= node_labels.items()
    )
    return tuple(sorted(selecting, key=lambda one: (-one.spec.priority, one.created, one.name)))


def selects(selector: LabelSelector | None, labels: Labels) -> bool:
    """Whether labels match; no selector and an empty one match everything.

    Source: Kubernetes, `metav1.LabelSelectorAsSelector`.
    """
    if selector is None:
        return True
    return selector.match_labels.items() <= labels.items() and all(
        _holds(requirement, labels) for requirement in selector.match_expressions
    )


def _holds(requirement: LabelSelectorRequirement, labels: Labels) -> bool:
    value = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value is not None and value in requirement.values
        case "NotIn":
            return value is None or value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None


def unsupported_fields(spec: CpuPolicySpec) -> tuple[str, ...]:
    """Fields set to what numapin cannot do yet, each as `field: value`."""
    wanted = {
        "mode": (spec.mode, ("Static", "None")),
        "isolation": (spec.isolation, ("Cpuset",)),
        "onUnsatisfiable": (spec.on_unsatisfiable, ("Share", "Evict")),
    }
    return tuple(
        f"{field}: {value}" for field, (value, known) in wanted.items() if value not in known
    )


def mark_selected(
    wanted: PodSelection, pods: Iterable[PodView], namespaces: Mapping[str, Labels]
) -> tuple[PodView, ...]:
    """The pods, each marked whether the selectors of a policy choose it.

    A namespace that has not been seen has no labels.
    """
    if wanted.namespace_selector is None and wanted.pod_selector is None:
        return tuple(pods)
    return tuple(
        replace(
            pod,
            selected=selects(wanted.pod_selector, pod.labels)
            and selects(wanted.namespace_selector, namespaces.get(pod.namespace, {})),
        )
        for pod in pods
    )
