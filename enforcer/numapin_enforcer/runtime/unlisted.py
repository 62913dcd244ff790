"""Containers that run on the node and that the runtime does not list. Does no I/O."""

from collections.abc import Callable, Collection, Mapping
from typing import Final

from numapin_api.conditions.reasons import Obstacle, Reason
from numapin_api.quantity import plural
from numapin_api.schema.plain import NodeAssignmentSpec
from numapin_enforcer.cgroups.tree import Tree, has_processes
from numapin_enforcer.runtime.container_index import Row

SHORT_ID: Final = 13
"""As much of an id as `crictl ps` prints."""


def unlisted_obstacles(
    spec: NodeAssignmentSpec | None,
    tree: Tree,
    unlisted: Mapping[str, Row],
    named: Collection[tuple[str, str]],
    has_tasks: Callable[[str], bool],
) -> tuple[Obstacle, ...]:
    """What to say if a container that cannot be identified may be an exclusive one.

    Args:
        spec: what is enforced; None if nothing is.
        tree: the cgroups as read.
        unlisted: those that the runtime does not list, by id.
        named: the pod's UID and the name of each container that the runtime lists.
        has_tasks: as in `has_processes`.
    """
    pods: dict[str, str] = {}
    for one in spec.containers if spec is not None else ():
        if one.exclusive and one.key not in named:
            pods[one.pod_uid] = f"{one.namespace}/{one.pod}"
    found = {
        id_: pods[row.pod_uid]
        for id_, row in sorted(unlisted.items())
        if row.pod_uid in pods and has_processes(tree, row.path, has_tasks)
    }
    if not found:
        return ()
    id_, pod = next(iter(found.items()))
    message = (
        f"the container runtime does not list {plural(len(found), 'running container')} of pods "
        f"with exclusive CPUs ({id_[:SHORT_ID]} of pod {pod} is one), which therefore "
        "share CPUs: does --cri-socket name the socket of the kubelet's runtime?"
    )
    return (Obstacle(Reason.CONTAINER_UNKNOWN, message),)
