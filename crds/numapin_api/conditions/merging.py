"""The conditions of an object as JSON values, brought up to date.

Written without the models, which take 9 MiB of memory: the enforcer uses it on every node.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from numapin_api.conditions.reasons import Verdict
from numapin_api.text import cut_text

MESSAGE_LIMIT: Final = 32768
"""Longest message of a condition, in characters. Source: Kubernetes `metav1.Condition`."""


def merge_conditions(
    before: Iterable[Mapping[str, Any]], verdicts: Iterable[Verdict], generation: int, now: str
) -> list[Mapping[str, Any]]:
    """The conditions with `verdicts` applied, sorted by type; conditions of others stay.

    Args:
        before: the conditions that the object has.
        verdicts: the new states; each type at most once. Their messages may be any text: file names
            and answers of other programs are in them.
        generation: the `metadata.generation` that they were computed from.
        now: the time, RFC 3339, used where a status changes.
    """
    known = {str(condition["type"]): condition for condition in before}
    for verdict in verdicts:
        old = known.get(verdict.type)
        status = "True" if verdict.holds else "False"
        known[verdict.type.value] = {
            "type": verdict.type.value,
            "status": status,
            "observedGeneration": generation,
            "lastTransitionTime": (
                old["lastTransitionTime"] if old and old["status"] == status else now
            ),
            "reason": str(verdict.reason),
            "message": cut_text(verdict.message, MESSAGE_LIMIT),
        }
    return [known[name] for name in sorted(known)]
