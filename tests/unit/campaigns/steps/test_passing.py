"""Parts are held and killed at the steps of a change, and all of them run in the end."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import cast

import pytest

from numapin_campaigns.parts.all_parts import Parts
from numapin_campaigns.parts.part import Part
from numapin_campaigns.steps import passing
from numapin_campaigns.steps.passing import Step, pass_through
from numapin_lab.errors import LabError
from numapin_lab.processes.daemons import Daemon, kill
from numapin_lab.running_lab import RunningLab, eventually

NAMES = ("operator", "enforcer", "standby")


class SleepingLab:
    """A lab whose parts only sleep; a step is reached at once or never."""

    def __init__(self, folder: Path) -> None:
        self.daemons = {
            name: Daemon(name, folder / name, ("sleep", "600"), folder) for name in NAMES
        }

    def wait(self, reached: Callable[[], bool], what: str) -> None:
        if not reached():
            raise LabError(f"waited in vain for {what}")

    def state(self, name: str) -> str:
        pid = self.daemons[name].pid()
        if pid is None:
            return "ended"
        stat = Path(f"/proc/{pid}/stat").read_text()
        return "held" if stat.rpartition(")")[2].split()[0] == "T" else "runs"

    def states(self) -> dict[str, str]:
        return {name: self.state(name) for name in NAMES}


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[SleepingLab]:
    """The lab, with all parts running."""
    found = SleepingLab(tmp_path)
    try:
        for daemon in found.daemons.values():
            daemon.start()
        yield found
    finally:
        for daemon in found.daemons.values():
            if (pid := daemon.pid()) is not None:
                kill(pid)


@pytest.fixture
def parts(lab: SleepingLab) -> Parts:
    return Parts({name: Part(daemon) for name, daemon in lab.daemons.items()})


def begin() -> None:
    """Begin nothing."""


ALL_RUN = dict.fromkeys(NAMES, "runs")


def test_at_each_step_what_would_end_it_is_held_and_in_the_end_all_run(
    lab: SleepingLab, parts: Parts
) -> None:
    begun: list[str] = []

    def is_held(name: str) -> bool:
        eventually(lab.states, ALL_RUN | {name: "held"})
        return True

    steps = [Step(one, (one,), partial(is_held, one)) for one in ("operator", "enforcer")]
    pass_through(cast("RunningLab", lab), parts, steps, lambda: begun.append("once"), ("operator",))
    assert begun == ["once"]
    assert lab.states() == ALL_RUN


@pytest.mark.parametrize("victims", [(), ("operator",), NAMES])
def test_what_is_held_goes_on_although_a_step_is_not_reached(
    lab: SleepingLab, parts: Parts, victims: tuple[str, ...]
) -> None:
    steps = [
        Step("one", ("operator",), lambda: True),
        Step("never", ("operator", "standby"), lambda: False),
    ]
    with pytest.raises(LabError, match="in vain for the step `never`"):
        pass_through(cast("RunningLab", lab), parts, steps, begin, victims)
    assert lab.states() == ALL_RUN


def test_one_part_that_cannot_go_on_leaves_no_other_one_held(
    lab: SleepingLab, parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = passing.go_on

    def fails_for_the_operator(part: Part) -> None:
        if part.daemon.name == "operator":
            raise LabError("it does not start")
        go_on(part)

    monkeypatch.setattr(passing, "go_on", fails_for_the_operator)
    with suppress(LabError):
        steps = [Step("never", NAMES, lambda: False)]
        pass_through(cast("RunningLab", lab), parts, steps, begin, ())
    eventually(lab.states, ALL_RUN | {"operator": "held"})
