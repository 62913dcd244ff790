"""What is watched by informers, and how that gets into the cache: all but the policies."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

from numapin_client.cache.informer import Informer
from numapin_client.cache.informer_settings import Hooks, InformerTiming
from numapin_client.cache.sieve import Sieve, name_of
from numapin_client.cache.store import Change
from numapin_client.client import ApiClient, Source
from numapin_client.errors import ForbiddenError
from numapin_client.resources import (
    CONTROLLER_REVISIONS,
    NAMESPACES,
    NODE_ASSIGNMENTS,
    NODE_REPORTS,
    NODE_TOPOLOGIES,
    NODES,
    PODS,
    Json,
)
from numapin_daemon.logs.lines import POD_UID
from numapin_daemon.logs.log_limit import LogLimit
from numapin_operator.observe.assignments.report import ReportView, TopologyView
from numapin_operator.observe.assignments.view import AssignmentView
from numapin_operator.observe.cache import ClusterState
from numapin_operator.observe.contact import LONGEST_BACKOFF_SECONDS
from numapin_operator.observe.holding.held_pod import HeldPod, held_pod
from numapin_operator.observe.pods.parser import parse_stored_pod, unusable_pod
from numapin_operator.observe.records import NodeView, slim_labels
from numapin_operator.observe.revisions import LABELS as REVISION_LABELS
from numapin_operator.observe.revisions import Revision
from numapin_operator.observe.stores.versioned_cache import Listed
from numapin_operator.placement import PodView

LIVE_PODS: Final = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"
"""Bound and not ended. The API server reports a pod that ends as deleted from this selection."""

TIMING: Final = InformerTiming(
    session_seconds=(25.0, 40.0),
    grace_seconds=10.0,
    backoff_cap_seconds=LONGEST_BACKOFF_SECONDS,
)
"""A watch that no longer delivers is noticed within 50 s.

The API server sends a bookmark 2 s before it ends a watch, and the next one starts there.
Source: apiserver `cacheWatcher.nextBookmarkTime`.
"""

ASSIGNMENT_TIMING: Final = replace(TIMING, chunk_limit=50)
"""A NodeAssignment has 10 to 15 kB, and a chunk is parsed in one step of the event loop."""

LINES: Final = LogLimit()
"""What this process has logged about pods that cannot be parsed, whoever has read them."""

UNBOUND_PODS: Final = "spec.nodeName=,status.phase!=Succeeded,status.phase!=Failed"
"""Those that a scheduler has not bound yet."""

MOST_TEXT: Final = 1000
"""Characters of a problem that are logged: it may contain what a tenant has written."""

NO_REVISIONS: Final = (
    "what a policy said before its last edit cannot be read: nodes that wait for their turn keep "
    "their settings, and their new pods are placed by the newest ones"
)

T = TypeVar("T")

_log = logging.getLogger(__name__)


def build_informers(
    api: ApiClient, state: ClusterState, wants: Callable[[str], bool] | None = None
) -> dict[str, Informer[Any]]:
    """The informers that feed `state`, by the name of what they watch; none runs yet.

    Args:
        api: an open client.
        state: the cluster as observed.
        wants: whether a node is of interest; None if all are.
    """
    live_pods = Source(PODS, field_selector=LIVE_PODS)
    of_pods = replace(TIMING, sieve=wants and Sieve("nodeName", _node_of, wants))
    by_name = wants and named(wants)
    of_nodes = replace(TIMING, sieve=by_name)
    of_assignments = replace(ASSIGNMENT_TIMING, sieve=by_name)
    return {
        "pods": Informer(api, live_pods, decode_pod, _one_by_one(_pod_changed, state), of_pods),
        "nodes": Informer(
            api, Source(NODES), NodeView.decode, _one_by_one(_node_changed, state), of_nodes
        ),
        "namespaces": Informer(
            api, Source(NAMESPACES), _decode_labels, _one_by_one(_namespace_changed, state), TIMING
        ),
        "nodeassignments": _assignments(api, state, of_assignments),
        "nodereports": Informer(
            api,
            Source(NODE_REPORTS),
            ReportView.decode,
            _one_by_one(_report_changed, state),
            of_assignments,
        ),
        "nodetopologies": Informer(
            api,
            Source(NODE_TOPOLOGIES),
            lambda body: TopologyView.decode(body, state.topologies.get(body["metadata"]["name"])),
            _one_by_one(_topology_changed, state),
            of_assignments,
        ),
    }


def revision_informer(
    api: ApiClient, namespace: str, state: ClusterState
) -> Informer[Revision | None]:
    """The stored generations of policies in the operator's namespace; None for a damaged one."""
    chosen = ",".join(f"{key}={value}" for key, value in REVISION_LABELS.items())
    source = Source(CONTROLLER_REVISIONS, namespace=namespace, label_selector=chosen)
    informer = Informer(api, source, Revision.decode, _one_by_one(_revision_changed, state), TIMING)
    informer.hooks = Hooks(start_over=state.revisions.start_over)
    return informer


async def catch_up_if_allowed(informer: Informer[Revision | None] | None) -> None:
    """Wait until the revisions are as new as those of the API server; not without the right."""
    if informer is None:
        return
    try:
        await informer.catch_up()
    except ForbiddenError as error:
        _log.error(NO_REVISIONS, extra={"error": str(error)})


def held_informer(api: ApiClient, state: ClusterState) -> Informer[HeldPod | None]:
    """The pods that are not bound; None for those that are not ours to open."""
    return Informer(
        api,
        Source(PODS, field_selector=UNBOUND_PODS),
        lambda body: held_pod(body, lambda: decode_pod(body), state.held.pods),
        _one_by_one(_held_changed, state),
        TIMING,
    )


def named(wants: Callable[[str], bool]) -> Sieve:
    """Objects that are named after nodes: those of some nodes."""
    return Sieve("name", name_of, wants)


def _node_of(pod: Json) -> str:
    return str(pod["spec"].get("nodeName") or "")


def _assignments(
    api: ApiClient, state: ClusterState, timing: InformerTiming
) -> Informer[AssignmentView]:
    """NodeAssignments, which also come as answers to our own writes: the newest state counts."""
    cache = state.assignments

    def decode(body: Json) -> AssignmentView:
        metadata = body["metadata"]
        state.assignment_sent(body)
        known = cache.known(metadata["name"])
        if known is not None and known.version >= int(metadata["resourceVersion"]):
            return known  # decoding what is late would cost time for nothing
        return AssignmentView.decode(body, known)

    informer = Informer(
        api,
        Source(NODE_ASSIGNMENTS),
        decode,
        _one_by_one(_assignment_changed, state),
        timing,
    )

    def listed(version: str) -> None:
        state.replace_assignments(Listed(tuple(informer.items.values()), int(version)))

    informer.hooks = Hooks(lambda: cache.newest, cache.start_over, listed)
    return informer


def decode_pod(body: Json, lines: LogLimit = LINES) -> PodView:
    """Decode a pod. One that cannot be parsed shares; each problem of a pod is logged once.

    A tenant may change a pod in a loop, each change is an event, and each list repeats them all.
    """
    try:
        pod, error = parse_stored_pod(body), None
    except Exception as problem:  # noqa: BLE001 - one pod must not stop the others
        pod, error = unusable_pod(body, f"it cannot be parsed: {problem!r}"), problem
    if pod.problem and (more := lines.admit(pod.uid, pod.problem)) is not None:
        name = f"{pod.namespace}/{pod.name}"
        what = {
            POD_UID: pod.uid,
            "pod": name,
            "node": pod.node,
            "error": pod.problem[:MOST_TEXT],
            **more,
        }
        level = logging.WARNING if error is None else logging.ERROR
        text = "cannot parse a pod, it runs in the shared pool"
        _log.log(level, text, extra=what, exc_info=error)
    return pod


def _decode_labels(body: Json) -> Mapping[str, str]:
    return slim_labels(body["metadata"])


def _one_by_one(
    take_in: Callable[[ClusterState, Change[T]], None], state: ClusterState
) -> Callable[[Sequence[Change[T]]], None]:
    """Take in each change for itself: an exception must not end the informer."""
    lines = LogLimit()

    def take_in_all(changes: Sequence[Change[T]]) -> None:
        for change in changes:
            try:
                take_in(state, change)
            except Exception as error:  # noqa: BLE001 - see above
                if (more := lines.admit(change.key, repr(error))) is not None:
                    about = {"object": str(change.key), **more}
                    _log.exception("cannot take in a change", extra=about)

    return take_in_all


def _pod_changed(state: ClusterState, change: Change[PodView]) -> None:
    old, new = change.old, change.new
    if old is not None and (new is None or new.node != old.node):
        state.drop_pod(change.key, old.node)
    if new is not None:
        state.put_pod(change.key, new)


def _held_changed(state: ClusterState, change: Change[HeldPod | None]) -> None:
    state.replace_held(change.old, change.new)


def _node_changed(state: ClusterState, change: Change[NodeView]) -> None:
    if change.new is None:
        state.drop_node(change.key.name)
    else:
        state.put_node(change.new)


def _assignment_changed(state: ClusterState, change: Change[AssignmentView]) -> None:
    if change.new is None:
        state.drop_assignment(change.key.name, int(change.version))
    else:
        state.put_assignment(change.new)


def _revision_changed(state: ClusterState, change: Change[Revision | None]) -> None:
    if change.new is None:
        state.revisions.drop(change.key.name)
    else:
        state.revisions.put(change.new)


def _report_changed(state: ClusterState, change: Change[ReportView]) -> None:
    if change.new is None:
        state.drop_report(change.key.name)
    else:
        state.put_report(change.new)


def _topology_changed(state: ClusterState, change: Change[TopologyView]) -> None:
    if change.new is None:
        state.drop_topology(change.key.name)
    else:
        state.put_topology(change.new)


def _namespace_changed(state: ClusterState, change: Change[Mapping[str, str]]) -> None:
    if change.new is None:
        state.drop_namespace(change.key.name)
    else:
        state.put_namespace(change.key.name, change.new)
