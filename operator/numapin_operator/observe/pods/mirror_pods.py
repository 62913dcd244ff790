"""Mirror pods: the API server's copies of static pods, and which of them are genuine.

The kubelet runs a static pod under the UID in its mirror pod's annotation. Anyone who may create
pods may write that annotation, so it needs a proof: the kubelet makes its Node the owner of every
mirror pod. It never runs a pod that has the annotation and is not its own mirror pod.
Source: Kubernetes v1.36, pkg/kubelet/pod/mirror_client.go, `CreateMirrorPod`; KEP-1314.

Does no I/O.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from numapin_api.status.containers import POD_UID_LENGTH, POD_UID_PATTERN
from numapin_operator.placement import MirrorClaim, PodView

MIRROR_ANNOTATION: Final = "kubernetes.io/config.mirror"
"""On the API server's copy of a static pod: the UID under which the kubelet runs it."""

_POD_UID: Final = re.compile(POD_UID_PATTERN, re.ASCII)


def is_pod_uid(value: object) -> bool:
    """Whether this is a UID that a pod's cgroups and a NodeAssignment can carry."""
    return (
        isinstance(value, str)
        and len(value) <= POD_UID_LENGTH
        and _POD_UID.fullmatch(value) is not None
    )


def mirror_claim(metadata: Mapping[str, Any]) -> MirrorClaim | None:
    """What a pod claims; None if it has no such annotation. All of it is the tenant's to choose."""
    annotations = metadata.get("annotations")
    if not isinstance(annotations, Mapping) or MIRROR_ANNOTATION not in annotations:
        return None
    uid, owners = annotations[MIRROR_ANNOTATION], metadata.get("ownerReferences")
    listed = owners if isinstance(owners, list) else []
    of_node = (one for one in listed if isinstance(one, Mapping) and one.get("kind") == "Node")
    owner = next(of_node, {})
    return MirrorClaim(
        uid if is_pod_uid(uid) else "", str(owner.get("name") or ""), str(owner.get("uid") or "")
    )


def with_static_uids(pods: Iterable[PodView], node_uid: str) -> tuple[PodView, ...]:
    """The pods of one node; each genuine mirror pod has the UID of its static pod.

    A static pod ends with its mirror pod: the kubelet makes a new mirror pod while it runs. Any
    other pod with the annotation keeps its own UID and gets nothing, because the kubelet never
    runs it: what it got would be lost until it is deleted.
    """
    listed = tuple(pods)
    claiming = [pod for pod in listed if pod.mirror is not None]
    if not claiming:
        return listed
    taken = {pod.uid for pod in listed}
    proven: dict[str, PodView] = {}
    for pod in sorted(claiming, key=lambda one: (*one.order, one.uid)):
        if pod.mirror and not _doubt(pod, pod.mirror, node_uid, taken):
            taken.add(pod.mirror.uid)
            proven[pod.uid] = replace(
                pod, uid=pod.mirror.uid, terminal=pod.terminal or pod.deleting
            )
    return tuple(
        pod
        if pod.mirror is None
        else proven.get(pod.uid) or _unproven(pod, _doubt(pod, pod.mirror, node_uid, taken))
        for pod in listed
    )


def _doubt(pod: PodView, claim: MirrorClaim, node_uid: str, taken: set[str]) -> str:
    """Why a claim is not believed; empty if it is."""
    if not claim.uid:
        return "its value is not the UID of a pod"
    if claim.node_name != pod.node or claim.node_uid != node_uid:
        return "the pod's owner is not the Node it runs on"
    if claim.uid in taken:
        return f"another pod of the node has the UID {claim.uid}"
    return ""


def _unproven(pod: PodView, doubt: str) -> PodView:
    problem = (
        f"metadata.annotations[{MIRROR_ANNOTATION}]: {doubt}, so the pod mirrors no static pod and"
        " the kubelet does not run it; create the pod without this annotation"
    )
    return replace(pod, problem=pod.problem or problem)
