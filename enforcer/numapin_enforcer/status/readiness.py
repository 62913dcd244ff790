"""What keeps the enforcer from being ready, for its readiness probe. Does no I/O."""

from collections.abc import Mapping
from typing import Final

from numapin_enforcer.status.status_builder import Report

NO_ANSWER_YET: Final = "it has not answered yet; does --cri-socket name its socket?"


def missing(problems: Mapping[str, str], report: Report) -> dict[str, str]:
    """What keeps the enforcer from being ready, for /readyz."""
    found = {name: problem for name, problem in problems.items() if problem}
    for verdict in report.verdicts:
        if verdict.type == "Ready" and not verdict.holds:
            found["enforcement"] = f"{verdict.reason}: {verdict.message}"
    if not found and report.content.runtime is None:
        found["container runtime"] = NO_ANSWER_YET
    return found
