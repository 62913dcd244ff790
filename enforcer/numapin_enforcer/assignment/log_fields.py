"""The fields of log lines about a container."""

from numapin_daemon.logs import POD_UID
from numapin_enforcer.assignment.spec import AssignedContainer


def log_fields(one: AssignedContainer | None) -> dict[str, object]:
    """The pod and the name of a container; nothing if it is not known."""
    if one is None:
        return {}
    return {POD_UID: one.pod_uid, "pod": f"{one.namespace}/{one.pod}", "container": one.container}
