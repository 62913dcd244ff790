"""What a person asks about: a pod, a node or a policy, by its name.

Does no I/O.
"""

from collections.abc import Sequence
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

FORMS: Final = "pod/NAME, node/NAME or policy/NAME"


@dataclass(frozen=True, slots=True)
class Target:
    """One object.

    Attributes:
        kind: `pod`, `node` or `policy`; empty if it was not said.
        name: its name.
        namespace: of a pod; empty for that of the login.
    """

    kind: str
    name: str
    namespace: str = ""


def parse_target(words: Sequence[str], namespace: str) -> Target:
    """Read `KIND NAME`, `KIND/NAME`, `NAMESPACE/NAME` or `NAME`.

    Args:
        words: what was written, one word or two.
        namespace: that of `-n`.

    Raises:
        UsageError: it is none of these.
    """
    if len(words) > 2:
        raise UsageError(f"{' '.join(words)}: too many words; give {FORMS}")
    first, slash, second = words[0].partition("/")
    if len(words) == 2:
        if slash or first.lower() not in KINDS:
            raise UsageError(f"{words[0]}: is no kind; give {FORMS}")
        return _checked(KINDS[first.lower()], words[1], namespace)
    if not slash:
        return _checked("", first, namespace)
    if first.lower() in KINDS:
        kind, (inner, deeper, name) = KINDS[first.lower()], second.partition("/")
        return _checked(kind, name, inner) if deeper else _checked(kind, second, namespace)
    if namespace not in {"", first}:
        raise UsageError(f"{words[0]}: names namespace {first}, and -n names {namespace}")
    return _checked(POD, second, first)


def _checked(kind: str, name: str, namespace: str) -> Target:
    if not name or "/" in name or name.startswith("."):
        raise UsageError(f"{name!r} is not a name; give {FORMS}")
    return Target(kind, name, namespace if kind in {"", POD} else "")
