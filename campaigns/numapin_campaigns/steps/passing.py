"""Pass through the steps of a change one by one.

A step lasts while the part that would take the next one is held (SIGSTOP). So what happens at a
step needs no luck, however fast the parts are.
"""

import os
import signal
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple

from numapin_lab.errors import LabError
from numapin_lab.node.agents import Agent
from numapin_lab.processes.daemons import Watched, wait_until
from numapin_lab.running_lab import RunningLab
from numapin_lab.vm.node import GuestDaemon

AGENTS: Final = ("operator", "enforcer")
END_SECONDS: Final = 60.0


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


@dataclass(frozen=True)
class Parts:
    """The parts of a lab that can be held and killed.

    `others`: all but operator and enforcer. `operator`: instead of the lab's own.
    """

    lab: RunningLab
    others: Mapping[str, Watched]
    operator: Agent | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Every part."""
        return (*AGENTS, *self.others)

    def hold(self, name: str) -> None:
        """Stop a part, if it runs."""
        if self.daemon(name).pid() is not None:
            self._send(name, signal.SIGSTOP)

    def go_on(self, name: str) -> None:
        """Let a part go on, or start it; returns when it is ready."""
        if self.start(name) and name in AGENTS:
            self.agent(name).wait_ready()

    def start(self, name: str) -> bool:
        """Let a part go on, or start it; returns at once, and whether it was started.

        Its login is that of its first start, which outlives every run.
        """
        if self.daemon(name).pid() is not None:
            self._send(name, signal.SIGCONT)
            return False
        self.daemon(name).start()
        return True

    def kill(self, name: str) -> None:
        """Kill a part, also one that is held; returns when it has ended.

        One that was held when it was killed, and is held for the next step too, does not run.
        """
        daemon = self.daemon(name)
        if daemon.pid() is not None:
            self._send(name, signal.SIGKILL)
            wait_until(lambda: daemon.pid() is None, f"{name} to end", END_SECONDS)

    def agent(self, name: str) -> Agent:
        """The operator or the enforcer."""
        return self.operator if self.operator and name == "operator" else self.lab.agent(name)

    def daemon(self, name: str) -> Watched:
        """The process of a part."""
        return self.agent(name).daemon if name in AGENTS else self.others[name]

    def _send(self, name: str, number: signal.Signals) -> None:
        daemon = self.daemon(name)
        if isinstance(daemon, GuestDaemon):
            daemon.send(number)
            return
        pid = daemon.pid()
        if pid is None:
            raise LabError(f"{name} does not run")
        os.kill(pid, number)


def pass_through(
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
            in_the_end.callback(parts.go_on, name)
        for step in steps:
            for name in step.held:
                parts.hold(name)
            for name in parts.names:
                if name not in step.held:
                    parts.go_on(name)
            if not started:
                begin()
                started = True
            parts.lab.wait(partial(step.reached), f"the step `{step.name}`")
            for name in victims:
                parts.kill(name)
            for name in victims:
                if name not in step.held:
                    parts.go_on(name)
