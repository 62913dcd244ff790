"""Whether a report may wait for the containers that it is about. Does no I/O."""

from collections.abc import Mapping
from typing import Any, Final

from numapin_api.cpuset import CpuSet

HOLD_SECONDS: Final = 3.0
"""How long a report waits for containers to start."""

_MAY_CHANGE: Final = frozenset({"conditions", "observed", "enforced", "pools", "notRunning"})


def may_wait(before: Mapping[str, Any], after: Mapping[str, Any], changed: frozenset[str]) -> bool:
    """Whether all that is new is that lines were accepted whose containers do not run yet.

    A kubelet starts a container soon after the pod is bound, and a report says so then. Until that
    nobody waits for a report: CPUs are released by a report which has seen the line, and a
    container that does not run has not used any.

    Args:
        before: the status of the NodeReport as the API server has it.
        after: the status as it must be.
        changed: the fields that differ, but for counters.
    """
    waiting = set(after.get("notRunning") or ())
    return (
        changed <= _MAY_CHANGE
        and waiting > set(before.get("notRunning") or ())
        and _uid(before, "observed") == _uid(after, "observed")
        and _uid(before, "enforced") == _uid(after, "enforced")
        and _said(before) == _said(after)
        and _only_fenced(before.get("pools") or {}, after.get("pools") or {})
    )


def _uid(status: Mapping[str, Any], field: str) -> object:
    return (status.get(field) or {}).get("uid")


def _said(status: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The conditions, but for the generation that they are about."""
    return [
        {key: value for key, value in one.items() if key != "observedGeneration"}
        for one in status.get("conditions") or ()
    ]


def _only_fenced(before: Mapping[str, str], after: Mapping[str, str]) -> bool:
    """Whether the pools differ at most in that the shared one has lost CPUs to new lines."""
    names = (before.keys() | after.keys()) - {"shared"}
    shared = CpuSet.parse(before.get("shared", "")), CpuSet.parse(after.get("shared", ""))
    return all(before.get(one) == after.get(one) for one in names) and shared[1] <= shared[0]
