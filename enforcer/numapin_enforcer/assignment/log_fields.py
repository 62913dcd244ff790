"""The fields of log lines about a container."""

from numapin_api.schema.plain import ContainerAssignment
from numapin_daemon.logs.lines import POD_UID


def log_fields(one: ContainerAssignment | None) -> dict[str, object]:
    """The pod and the name of a container; nothing if it is not known."""
    if one is None:
        return {}
    return {POD_UID: one.pod_uid, "pod": f"{one.namespace}/{one.pod}", "container": one.container}
