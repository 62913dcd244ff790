"""Which cgroups something else keeps changing, and how often. Does no I/O."""

from dataclasses import dataclass, field, replace
from typing import Final

from numapin_api.text import first_texts
from numapin_enforcer.plan.drift import Drift

RUN_SECONDS: Final = 60.0
"""Changes of one cgroup that are no farther apart belong together."""

OFTEN: Final = 10
"""After so many changes that belong together, another program is at work, not an accident."""

MOST_REMEMBERED: Final = 256
"""How many cgroups are remembered at most; pods come and go."""

SHOWN: Final = 3
"""How many cgroups a message names."""


@dataclass(frozen=True, slots=True)
class _Run:
    """Changes of one cgroup that belong together, and the last of them."""

    last: Drift
    began_seconds: float
    ended_seconds: float
    count: int = 1

    def __str__(self) -> str:
        lasted = max(1, round(self.ended_seconds - self.began_seconds))
        return f"{self.last.subject} was changed {self.count} times in {lasted} s"


@dataclass(slots=True)
class OtherWriters:
    """Counts the external changes of each cgroup while they go on."""

    _runs: dict[str, _Run] = field(default_factory=dict)

    def note(self, drift: Drift, now_seconds: float) -> str:
        """The text of the Event to post: at the 10th change, the 20th, the 40th; else empty."""
        run = self._runs.pop(drift.path, None)
        if run is None or now_seconds - run.ended_seconds >= RUN_SECONDS:
            run = _Run(drift, now_seconds, now_seconds, 0)
        run = replace(run, last=drift, ended_seconds=now_seconds, count=run.count + 1)
        self._runs[drift.path] = run
        if len(self._runs) > MOST_REMEMBERED:
            del self._runs[next(iter(self._runs))]
        times, rest = divmod(run.count, OFTEN)
        if rest or times.bit_count() != 1:
            return ""
        return (
            f"another program writes to the same cgroup: {run}, last: {drift}. Find it (a kubelet "
            "with a static policy, an NRI plug-in, a node agent) and stop it, or exclude the pod "
            "or the node from the policy"
        )

    def describe(self, now_seconds: float) -> str:
        """The cgroups that are being changed often, the most often first; empty for none."""
        busy = sorted(
            (
                run
                for run in self._runs.values()
                if run.count >= OFTEN and now_seconds - run.ended_seconds < RUN_SECONDS
            ),
            key=lambda run: (-run.count, run.last.path),
        )
        if not busy:
            return ""
        return f"another program writes to cgroups: {first_texts([*map(str, busy)], SHOWN)}"
