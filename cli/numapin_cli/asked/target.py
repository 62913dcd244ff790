"""What a person asks about: a pod, a node or a policy, by its name.

Does no I/O.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from numapin_cli.subcommand import UsageError

POD: Final = "pod"
NODE: Final = "node"
POLICY: Final = "policy"

KINDS: Final = {
    POD: POD,
    "pods": POD,
    "po": POD,
    NODE: NODE,
    "nodes": NODE,
    "no": NODE,
    "nodeassignment": NODE,
    "nodeassignments": NODE,
    "na": NODE,
    "nodereport": NODE,
    "nodereports": NODE,
    "noderep": NODE,
    "nodetopology": NODE,
    "nodetopologies": NODE,
    "nodetopo": NODE,
    POLICY: POLICY,
    "policies": POLICY,
    "cpupolicy": POLICY,
    "cpupolicies": POLICY,
    "cpupol": POLICY,
}
"""What people call each kind."""

WORKLOADS: Final = {
    "deployment": "Deployment",
    "statefulset": "StatefulSet",
    "daemonset": "DaemonSet",
    "replicaset": "ReplicaSet",
    "job": "Job",
    "cronjob": "CronJob",
}
"""The kinds of which the pods are explained, each as its objects have it."""

_SHORT: Final = {
    "deploy": "deployment",
    "sts": "statefulset",
    "ds": "daemonset",
    "rs": "replicaset",
    "cj": "cronjob",
}

EXPLAINED: Final = {
    **KINDS,
    **{kind: kind for kind in WORKLOADS},
    **{f"{kind}s": kind for kind in WORKLOADS},
    **_SHORT,
}
"""What people call each kind that can be explained."""

FORMS: Final = "pod/NAME, node/NAME or policy/NAME"


@dataclass(frozen=True, slots=True)
class Target:
    """One object.

    Attributes:
        kind: `pod`, `node`, `policy` or one of `WORKLOADS`; empty if it was not said.
        name: its name.
        namespace: of a pod or a workload; empty for that of the login.
    """

    kind: str
    name: str
    namespace: str = ""


def parse_target(words: Sequence[str], namespace: str, kinds: Mapping[str, str] = KINDS) -> Target:
    """Read `KIND NAME`, `KIND/NAME`, `NAMESPACE/NAME` or `NAME`.

    Args:
        words: what was written, one word or two.
        namespace: that of `-n`.
        kinds: what each kind may be called; a group behind it, as in `pod.v1` or
            `deployment.apps`, is left out, so that names of `kubectl get -o name` can be given.

    Raises:
        UsageError: it is none of these.
    """
    if len(words) > 2:
        raise UsageError(f"{' '.join(words)}: too many words; give {FORMS}")
    first, slash, second = words[0].partition("/")
    called = first.lower().partition(".")[0] if slash or len(words) == 2 else ""
    if len(words) == 2:
        if slash or called not in kinds:
            raise UsageError(f"{words[0]}: is no kind; give {FORMS}")
        return _checked(kinds[called], words[1], namespace)
    if not slash:
        return _checked("", first, namespace)
    if called in kinds:
        kind, (inner, deeper, name) = kinds[called], second.partition("/")
        return _checked(kind, name, inner) if deeper else _checked(kind, second, namespace)
    if namespace not in {"", first}:
        raise UsageError(f"{words[0]}: names namespace {first}, and -n names {namespace}")
    return _checked(POD, second, first)


def _checked(kind: str, name: str, namespace: str) -> Target:
    if not name or "/" in name or name.startswith("."):
        raise UsageError(f"{name!r} is not a name; give {FORMS}")
    return Target(kind, name, "" if kind in {NODE, POLICY} else namespace)
