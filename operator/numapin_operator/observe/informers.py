"""Pods, Nodes and Namespaces: what is watched of them, and how they get into the cache."""

import logging
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from numapin_client.client import ApiClient, Source
from numapin_client.informer import Informer
from numapin_client.resources import NAMESPACES, NODES, PODS, Json
from numapin_client.store import Change
from numapin_operator.observe.cache import ClusterState
from numapin_operator.observe.pod_parser import origin_of, parse_pod
from numapin_operator.observe.records import NodeView, slim_labels
from numapin_operator.placement import PodFormatError, PodView

LIVE_PODS: Final = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"
"""Bound and not ended. The API server reports a pod that ends as deleted from this selection."""

_log = logging.getLogger(__name__)


def build_informers(api: ApiClient, state: ClusterState) -> dict[str, Informer[Any]]:
    """The informers that feed `state`, by the name of what they watch; none runs yet."""
    live_pods = Source(PODS, field_selector=LIVE_PODS)
    return {
        "pods": Informer(api, live_pods, decode_pod, partial(_pods_changed, state)),
        "nodes": Informer(api, Source(NODES), NodeView.decode, partial(_nodes_changed, state)),
        "namespaces": Informer(
            api, Source(NAMESPACES), _decode_labels, partial(_namespaces_changed, state)
        ),
    }


def decode_pod(body: Json) -> PodView:
    """Decode a pod. One that cannot be parsed shares; an error here would end the informer."""
    try:
        return parse_pod(body)
    except PodFormatError as error:
        _log.warning("cannot parse a pod, it runs in the shared pool", extra={"error": str(error)})
        metadata, spec = body["metadata"], body.get("spec") or {}
        return PodView(
            uid=metadata["uid"],
            namespace=metadata.get("namespace", ""),
            name=metadata["name"],
            qos="BestEffort",
            containers=(),
            node=spec.get("nodeName") or "",
            origin=origin_of(body),
        )


def _decode_labels(body: Json) -> Mapping[str, str]:
    return slim_labels(body["metadata"])


def _pods_changed(state: ClusterState, changes: Sequence[Change[PodView]]) -> None:
    for change in changes:
        old, new = change.old, change.new
        if old is not None and (new is None or new.node != old.node):
            state.drop_pod(change.key, old.node)
        if new is not None:
            state.put_pod(change.key, new)


def _nodes_changed(state: ClusterState, changes: Sequence[Change[NodeView]]) -> None:
    for change in changes:
        if change.new is None:
            state.drop_node(change.key.name)
        else:
            state.put_node(change.new)


def _namespaces_changed(state: ClusterState, changes: Sequence[Change[Mapping[str, str]]]) -> None:
    for change in changes:
        if change.new is None:
            state.drop_namespace(change.key.name)
        else:
            state.put_namespace(change.key.name, change.new)
