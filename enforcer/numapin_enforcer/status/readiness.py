"""What keeps the enforcer from being ready, for its readiness probe. Does no I/O."""

from collections.abc import Mapping

from numapin_enforcer.status.status_builder import Report


def missing(problems: Mapping[str, str], report: Report) -> dict[str, str]:
    """What keeps the enforcer from being ready, for /readyz."""
    found = {name: problem for name, problem in problems.items() if problem}
    for verdict in report.verdicts:
        if verdict.type == "Ready" and not verdict.holds:
            found["enforcement"] = f"{verdict.reason}: {verdict.message}"
    return found
