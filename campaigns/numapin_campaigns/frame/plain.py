"""The report of a campaign that excuses nothing. Does no I/O."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from numapin_campaigns.frame.report import Report

Violation = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class PlainReport(Report[Violation]):
    """Each violation is as it is shown; `own` are the campaign's own figures."""

    own: Mapping[str, Any] = field(default_factory=dict)

    def figures(self) -> dict[str, Any]:
        """The campaign's own figures."""
        return dict(self.own)

    def shown(self, found: Sequence[Violation]) -> list[dict[str, Any]]:
        """They are as they are shown."""
        return [dict(one) for one in found]
