"""Pass through the steps of a change one by one.

A step lasts while the part that would take the next one is stopped (SIGSTOP). So what happens at a
step needs no luck, however fast the parts are.
"""

from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Final, NamedTuple

from numapin_campaigns.faults.registry import ALL
from numapin_campaigns.frame.plan import Needs, possible
from numapin_campaigns.parts.all_parts import Parts
from numapin_campaigns.parts.part import AGENTS, Part
from numapin_lab.running_lab import RunningLab

VICTIMS: Final = tuple(
    one.parts
    for one in possible(ALL, (Needs.TOGETHER,))
    if set(one.parts) <= set(AGENTS) and not one.stops
)
"""Every choice of numapin's parts that faults kill."""


class Step(NamedTuple):
    """A state of a change.

    Attributes:
        name: for people.
        held: the parts that would end it; the others run.
        reached: whether it has begun.
    """

    name: str
    held: Collection[str]
    reached: Callable[[], bool]


def go_on(part: Part) -> None:
    """Let a part go on, or start it; returns when it is ready then."""
    if part.start():
        part.wait_ready()


def pass_through(
    lab: RunningLab,
    parts: Parts,
    steps: Sequence[Step],
    begin: Callable[[], None],
    victims: Collection[str],
) -> None:
    """Begin a change, and kill the victims at each of its steps.

    A victim starts again at once, or, if it was held, for the next step. In the end all parts run,
    also if a step was not reached.

    Raises:
        LabError: a step was not reached, or a part did not start again.
    """
    started = False
    with ExitStack() as in_the_end:
        for name in reversed(parts.names):
            in_the_end.callback(go_on, parts[name])
        for step in steps:
            for name in step.held:
                parts[name].stop()
            for name in parts.names:
                if name not in step.held:
                    go_on(parts[name])
            if not started:
                begin()
                started = True
            lab.wait(partial(step.reached), f"the step `{step.name}`")
            for name in victims:
                parts[name].kill()
            for name in victims:
                if name not in step.held:
                    go_on(parts[name])
