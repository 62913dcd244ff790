"""Which pods a policy selects. Does no I/O."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from numapin_api.cpupolicy import PodSelection
from numapin_api.meta.matching import Labels, selects
from numapin_api.meta.selectors import LabelSelector
from numapin_operator.placement import PodView


def mark_selected(
    selection: PodSelection, pods: Iterable[PodView], namespaces: Mapping[str, Labels]
) -> tuple[PodView, ...]:
    """Mark each pod with whether a policy's selectors match it.

    A pod whose namespace has not been observed is not selected by a namespace selector: what it
    gets, it keeps for life. Pods of confined namespaces are never selected.
    """
    confined = frozenset(selection.confined_namespaces)
    if selection.namespace_selector is None and selection.pod_selector is None and not confined:
        return tuple(pods)
    return tuple(
        _marked(
            pod,
            pod.namespace not in confined
            and selects(selection.pod_selector, pod.labels)
            and _selects_namespace(selection.namespace_selector, namespaces.get(pod.namespace)),
        )
        for pod in pods
    )


def _selects_namespace(selector: LabelSelector | None, labels: Labels | None) -> bool:
    if selector is None or not (selector.match_labels or selector.match_expressions):
        return True
    return labels is not None and selects(selector, labels)


def _marked(pod: PodView, selected: bool) -> PodView:
    return pod if pod.selected is selected else replace(pod, selected=selected)
