"""Random histories by seed, and the shortest part of a history that still breaks the same law."""

import errno
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from numapin_api.cpuset import CpuSet
from numapin_campaigns.histories.actions import (
    SANDBOX,
    Action,
    Assign,
    End,
    Enter,
    Fault,
    FenceNew,
    History,
    Make,
    Meanwhile,
    Name,
    Outside,
    Overwrite,
    Pass,
    Refuse,
    Restart,
    Restrict,
    StandbyPass,
    container_of,
)
from numapin_campaigns.histories.node import Node
from numapin_campaigns.histories.specs import placed, resized
from numapin_campaigns.laws.writes import BrokenLawError

REFUSALS = (
    errno.EINVAL,
    errno.EBUSY,
    errno.ENOSPC,
    errno.EACCES,
    errno.EIO,
    errno.ENOMEM,
    errno.ENODEV,
)
"""What the kernel answers to a write that it does not make; with ENODEV the cgroup is gone."""

NAMES = ("a", "b", "c")


@dataclass(frozen=True)
class Kind:
    """What random histories contain: failing writes alone, or everything."""

    name: str
    everything: bool


FAILURES, EVERYTHING = Kind("failures", False), Kind("everything", True)
KINDS = {one.name: one for one in (FAILURES, EVERYTHING)}


def broken_law(history: History) -> Exception | None:
    """What a history breaks: a law, or the program itself; None if all holds."""
    try:
        node = Node(history)
        for action in history.actions:
            node.play(action)
        node.end()
    except Exception as error:  # noqa: BLE001 (an error of any kind ends the enforcer)
        return error
    return None


def random_history(seed: int, kind: Kind) -> tuple[History, Exception | None]:
    """The history of a seed up to the first broken law, and what breaks it."""
    return _Author(seed, kind).write()


def shortened(history: History) -> History:
    """The history without everything that the broken law does not need."""
    found = broken_law(history)
    while True:
        shorter = next((one for one in _shorter(history) if _is_same(broken_law(one), found)), None)
        if shorter is None:
            return history
        history = shorter


def _is_same(one: Exception | None, other: Exception | None) -> bool:
    if isinstance(one, BrokenLawError) and isinstance(other, BrokenLawError):
        return one.law == other.law
    return type(one) is type(other)


def _shorter(history: History) -> Iterator[History]:
    """The history with one thing less, the largest parts first."""
    actions, size = history.actions, len(history.actions) // 2
    while size:
        for start in range(0, len(actions), size):
            yield replace(history, actions=actions[:start] + actions[start + size :])
        size //= 2
    for index, action in enumerate(actions):
        for less in _less(action):
            yield replace(history, actions=(*actions[:index], less, *actions[index + 1 :]))


def _less(action: Action) -> Iterator[Action]:
    if isinstance(action, Assign):
        for one in action.containers:
            rest = tuple(other for other in action.containers if other != one)
            yield replace(action, containers=rest)
    if isinstance(action, Pass | StandbyPass | FenceNew):
        for fault in action.faults:
            yield replace(action, faults=tuple(one for one in action.faults if one != fault))


class _Author:
    """Plays what it invents, because what can happen next depends on what there is."""

    def __init__(self, seed: int, kind: Kind) -> None:
        self._random, self._kind = random.Random(seed), kind
        driver = self._random.choice(("cgroupfs", "cgroupfs", "systemd"))
        cpus, numa_nodes = self._random.randint(3, 8), self._random.choice((1, 1, 2))
        self._history = History(self._random.choice((1, 2)), driver, cpus, numa_nodes)
        self._node = Node(self._history)
        self._count = 0
        self._refused = self._meddled = 0.0
        self._faults: list[Fault] = []
        self._assigned: Assign | None = None
        """The last spec."""

    def write(self) -> tuple[History, Exception | None]:
        try:
            self._invent()
            self._node.end()
        except Exception as error:  # noqa: BLE001 (an error of any kind ends the enforcer)
            return self._history, error
        return self._history, None

    def _invent(self) -> None:
        for _ in range(self._random.randint(1, 4)):
            self._new_pod()
        self._do(self._new_spec())
        self._do(Pass())
        rounds = range(self._random.randint(2, 6))
        for _ in rounds:
            self._round() if self._kind.everything else self._failing_round()

    def _failing_round(self) -> None:
        """All is named and in force before writes fail."""
        pick = self._random
        if pick.random() < 0.6:
            self._do(self._new_spec())
        for _ in range(pick.randint(0, 2)):
            self._something_outside()
        for short in tuple(self._node.cgroups):
            self._do(Name(short))
        self._do(Pass())
        if pick.random() < 0.7:
            self._do(self._new_spec())
        self._refused = pick.choice((0.05, 0.2, 0.5))
        self._do(Pass() if pick.random() < 0.8 else StandbyPass())
        self._refused = 0.0

    def _round(self) -> None:
        pick = self._random
        if pick.random() < 0.35:
            self._do(self._new_spec())
        for _ in range(pick.randint(0, 3)):
            self._something_outside()
            if pick.random() < 0.3:
                self._do(FenceNew())
        if pick.random() < 0.1:
            self._do(Restart())
        self._refused = pick.choice((0.0, 0.0, 0.05, 0.3))
        self._meddled = pick.choice((0.0, 0.0, 0.1, 0.3))
        if pick.random() < 0.2:
            self._do(StandbyPass(hung=pick.random() < 0.3))
        else:
            by_runtime = pick.random() < 0.5
            self._do(Pass(full_resync=pick.random() < 0.5, by_runtime=by_runtime))
        self._refused = self._meddled = 0.0

    def _do(self, action: Action) -> None:
        """Add the action, and its faults once they are drawn, to the history; and play it."""
        before, self._faults = self._history.actions, []
        self._history = replace(self._history, actions=(*before, action))
        try:
            self._node.play(action, self._draw_faults)
        finally:
            if self._faults and isinstance(action, Pass | StandbyPass | FenceNew):
                done = replace(action, faults=tuple(self._faults))
                self._history = replace(self._history, actions=(*before, done))

    def _draw_faults(self, short: str, nth: int) -> list[Fault]:
        found: list[Fault] = []
        if self._meddled and self._random.random() < self._meddled:
            meddling = self._outside()
            found += [Meanwhile(short, nth, one) for one in meddling]
        if self._refused and self._random.random() < self._refused:
            number = self._random.choice(REFUSALS)
            gone = number == errno.ENODEV and short.count("/")
            if gone:
                found.append(Meanwhile(short, nth, End(short)))
            elif number != errno.ENODEV:
                found.append(Refuse(short, nth, number))
        self._faults += found
        return found

    def _something_outside(self) -> None:
        for action in self._outside():
            self._do(action)

    def _outside(self) -> list[Outside]:
        pick, shorts = self._random, list(self._node.cgroups)
        pods = [one for one in shorts if _is_pod(one)]
        containers = [one for one in shorts if one.count("/") == 1]
        kinds = ("pod", "start", "end", "end pod", "overwrite", "restrict", "name")
        (kind,) = pick.choices(kinds, (20, 15, 15, 8, 30, 2, 10))
        found: Iterable[Outside] = ()
        if kind == "pod":
            found = self._pod()
        elif kind == "start" and pods:
            found = self._container(pick.choice(pods), pick.choice(NAMES))
        elif kind.startswith("end") and (ending := pods if kind == "end pod" else containers):
            found = [End(pick.choice(ending))]
        elif kind == "overwrite":
            found = [self._overwrite(pick.choice(shorts))]
        elif kind == "restrict":
            found = [Restrict(self._some_cpus() if pick.random() < 0.5 else "")]
        elif kind == "name":
            found = [Name(one) for one in containers if pick.random() < 0.5]
        return list(found)

    def _overwrite(self, short: str) -> Overwrite:
        if self._history.numa_nodes > 1 and self._random.random() < 0.2:
            return Overwrite(short, mems=self._random.choice(("0", "1", "0-1")))
        return Overwrite(short, self._some_cpus())

    def _some_cpus(self) -> str:
        count = self._history.cpus
        return str(CpuSet(self._random.sample(range(count), self._random.randint(1, count))))

    def _new_pod(self) -> None:
        for action in self._pod():
            self._do(action)

    def _pod(self) -> Iterator[Outside]:
        pick = self._random
        self._count += 1
        pod = f"{pick.choice('ggbe')}{self._count}"
        yield Make(pod)
        yield from self._container(pod, SANDBOX)
        for name in pick.sample(NAMES, pick.randint(1, 3)):
            if pick.random() < 0.8:
                yield from self._container(pod, name)

    def _container(self, pod: str, name: str) -> Iterator[Outside]:
        if any(container_of(one) == (pod, name) for one in self._node.cgroups):
            return
        pick = self._random
        self._count += 1
        short = f"{pod}/{name}{self._count}"
        yield Make(short)
        if pick.random() < 0.7:
            yield Name(short)
        if pick.random() < 0.25:
            yield Make(f"{short}/n")
            yield Enter(f"{short}/n")
        elif pick.random() < 0.8:
            yield Enter(short)

    def _new_spec(self) -> Assign:
        """Containers placed anew, or those of the last spec resized."""
        before = self._assigned
        if before is not None and self._random.random() < 0.4:
            self._assigned = resized(self._random, before)
        else:
            running = {container_of(one) for one in self._node.cgroups if one.count("/") == 1}
            self._assigned = placed(self._random, self._history, running)
        return self._assigned


def _is_pod(short: str) -> bool:
    return "/" not in short and short not in {"burstable", "besteffort"}
