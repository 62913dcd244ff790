"""Every history of a class on a tiny node: each pair of specs, each single fault at each write.

What is left out: permutations of CPUs (the enforcer prefers none, see `test_cpus_are_alike`), and
overwrites that the kernel refuses (they change nothing).
"""

import errno
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from numapin_api.cpuset import CpuSet
from numapin_campaigns.histories.actions import (
    Action,
    Assign,
    End,
    Enter,
    Fault,
    FenceNew,
    History,
    Kill,
    Make,
    Meanwhile,
    Name,
    Outside,
    Overwrite,
    Own,
    Pass,
    Refuse,
    StandbyPass,
)
from numapin_campaigns.histories.node import Node
from numapin_campaigns.histories.replay import Replay
from numapin_campaigns.laws.writes import BrokenLawError

Place = tuple[str, int]
"""A write of a pass: its cgroup, and how many writes to that cgroup came before."""

REPLAY = Replay()
"""Plays what comes before a pass whose writes are asked for."""

_Seen = TypeVar("_Seen")

Labels = tuple[int, ...]
"""For each CPU whose it is in a spec: 0 is the pool."""

NEWBORN = ("g8", "b9")
"""Pods that appear: Guaranteed, and in a QoS class."""


@dataclass(frozen=True)
class World:
    """A tiny node; `owners` are the containers that a spec may give exclusive CPUs."""

    cgroups: tuple[str, ...]
    owners: tuple[str, ...]

    def setup(self) -> list[Action]:
        """Its cgroups are made, named by the runtime, and populated where they have no child."""
        pods = dict.fromkeys(one.partition("/")[0] for one in self.cgroups)
        made = [Make(one) for one in (*pods, *self.cgroups)]
        named = [Name(one) for one in self.cgroups if one.count("/") == 1]
        return [*made, *named, *(Enter(one) for one in self.leaves)]

    @property
    def leaves(self) -> list[str]:
        """The cgroups that have no child."""
        return [one for one in self.cgroups if not any(o.startswith(f"{one}/") for o in self.all)]

    @property
    def all(self) -> list[str]:
        """The classes, the pods and what is in them."""
        pods = dict.fromkeys(one.partition("/")[0] for one in self.cgroups)
        return ["burstable", "besteffort", *pods, *self.cgroups]

    def specs(self, cpus: int) -> Iterator[tuple[Labels, Assign]]:
        """Every way to divide the CPUs among pool and owners, the pool not empty."""
        for labels in itertools.product(range(len(self.owners) + 1), repeat=cpus):
            if 0 in labels:
                yield labels, self._spec(labels)

    def _spec(self, labels: Labels) -> Assign:
        def of(label: int) -> CpuSet:
            return CpuSet(cpu for cpu, one in enumerate(labels) if one == label)

        owned = ((owner.split("/"), of(label)) for label, owner in enumerate(self.owners, 1))
        listed = (Own(pod, name, str(cpus)) for (pod, name), cpus in owned if cpus)
        return Assign(str(of(0)), tuple(listed))


WORLDS: Mapping[str, World] = {
    "two containers": World(("g1/a1", "g1/b2", "b3/c4"), ("g1/a", "g1/b")),
    "two pods": World(("g1/a1", "g2/b2", "b3/c4"), ("g1/a", "g2/b")),
    "sandbox": World(("g1/a1", "g1/s2", "e3/c4"), ("g1/a",)),
    "nested": World(("g1/a1", "g1/a1/n", "b3/c4"), ("g1/a",)),
    "nested, shared": World(("g1/a1", "b3/c4", "b3/c4/n"), ("g1/a",)),
    "in classes": World(("e1/a1", "b2/b2"), ("e1/a", "b2/b")),
}
"""By name; the containers of the last have exclusive CPUs and are in QoS classes."""


def places(history: History, action: Pass) -> list[Place]:
    """The writes of the pass that comes after a history, in order, up to a broken law."""
    return [place for place, _ in at_each_write(history, action, lambda _: ())]


def at_each_write(
    history: History, action: Pass, look: Callable[[Node], _Seen]
) -> list[tuple[Place, _Seen]]:
    """The same with what `look` says of the node just before each write."""
    node, found = REPLAY.play(history), list[tuple[Place, _Seen]]()

    def note(short: str, nth: int) -> tuple[Fault, ...]:
        found.append(((short, nth), look(node)))
        return ()

    with suppress(BrokenLawError):  # whoever plays the history is told
        node.play(action, note)
    return found


@dataclass(frozen=True)
class Case:
    """A node that one spec is in force on, and what follows it."""

    world: World
    version: int
    labels: tuple[tuple[int, int], ...]
    """For each CPU whose it is in the first spec, and in the second."""
    one: Assign
    two: Assign
    by_runtime: bool

    def history(self, *then: Action) -> History:
        """The history in which `then` follows the first spec."""
        actions = (*self.world.setup(), self.one, Pass(), *then)
        return History(self.version, "cgroupfs", len(self.labels), 1, actions)

    def second(self, *faults: Fault) -> History:
        """The history in which the pass for the second spec has these faults."""
        return self.history(self.two, replace(self.last, faults=faults))

    @property
    def last(self) -> Pass:
        """The pass for the second spec, if no write fails."""
        return Pass(by_runtime=self.by_runtime)

    def places(self, *before: Action) -> list[Place]:
        """The writes of the pass for the second spec, in order, if none fails."""
        return places(self.history(*before, self.two), self.last)

    def sets(self) -> Iterator[CpuSet]:
        """Every set of CPUs but the empty one, up to a permutation of CPUs with the same labels."""
        for chosen in itertools.product((False, True), repeat=len(self.labels)):
            if any(chosen) and is_sorted(zip(self.labels, chosen, strict=True)):
                yield CpuSet(cpu for cpu, one in enumerate(chosen) if one)

    def overwrites(self, node: Node) -> list[Overwrite]:
        """What another program can write to a cgroup now, if the kernel takes it."""
        pairs = itertools.product(self.world.all, self.sets())
        return [
            Overwrite(short, str(cpus))
            for short, cpus in pairs
            if node.kernel.takes(node.paths.path(short), cpus)
        ]


def _refuse(case: Case) -> Iterator[History]:
    yield case.second()
    for place in case.places():
        yield case.second(Refuse(*place, errno.EBUSY))


def _kill(case: Case) -> Iterator[History]:
    """The standby looks twice, then the next enforcer starts."""
    after = (StandbyPass(), StandbyPass(), case.last)
    for place in case.places():
        yield case.history(case.two, replace(case.last, faults=(Kill(*place),)), *after)


def _kill_after_refusal(case: Case) -> Iterator[History]:
    """An earlier pass could write nothing; the copy on the node has the second spec already."""
    refused = Pass(faults=tuple(Refuse(*place, errno.EBUSY) for place in case.places()))
    after = (StandbyPass(), StandbyPass(), case.last)
    for place in case.places():
        killed = replace(case.last, faults=(Kill(*place),))
        yield case.history(case.two, refused, killed, *after)


def _end(case: Case) -> Iterator[History]:
    for place in case.places():
        for short in case.world.all[2:]:
            yield case.second(Meanwhile(*place, End(short)))


def _new(case: Case) -> Iterator[History]:
    for place in case.places():
        for new in _newborn(case.world):
            yield case.second(*(Meanwhile(*place, one) for one in new))


def _hung(case: Case) -> Iterator[History]:
    """The enforcer is stopped, the standby fences, and the enforcer goes on with its plan."""
    fence = StandbyPass(hung=True)
    for place in case.places():
        for new in _newborn(case.world):
            yield case.second(*(Meanwhile(*place, one) for one in (*new, fence)))


def _fence(case: Case) -> Iterator[History]:
    """What appears is fenced by its event, each write of which fails or not."""
    for new in _newborn(case.world):
        for refused in (None, *(one.cgroup for one in new if isinstance(one, Make))):
            faults = (Refuse(refused, 0, errno.EBUSY),) if refused else ()
            fenced = [one for each in new for one in (each, *_fenced(each, faults))]
            last = Pass(full_resync=False, by_runtime=case.by_runtime)
            yield case.history(*fenced, case.two, last)


def _fenced(action: Outside, faults: tuple[Fault, ...]) -> tuple[Action, ...]:
    return (FenceNew(faults),) if isinstance(action, Make) else ()


def _drift(case: Case) -> Iterator[History]:
    for drift in case.overwrites(REPLAY.play(case.history())):
        yield case.history(drift, case.two, case.last)
        for place in case.places(drift):
            refused = replace(case.last, faults=(Refuse(*place, errno.EBUSY),))
            yield case.history(drift, case.two, refused)


def _meddle(case: Case) -> Iterator[History]:
    before = case.history(case.two)
    for place, overwrites in at_each_write(before, case.last, case.overwrites):
        for one in overwrites:
            yield case.second(Meanwhile(*place, one))


CLASSES: Mapping[str, Callable[[Case], Iterator[History]]] = {
    "refuse": _refuse,
    "kill": _kill,
    "kill after a refusal": _kill_after_refusal,
    "end": _end,
    "new": _new,
    "hung": _hung,
    "fence": _fence,
    "drift": _drift,
    "meddle": _meddle,
}
"""What goes wrong at each single write of the pass for the second spec."""


def cases(world: World, version: int, cpus: int) -> Iterator[Case]:
    """Every pair of specs, up to a permutation of CPUs."""
    specs = list(world.specs(cpus))
    for (first, one), (second, two) in itertools.product(specs, specs):
        labels = tuple(zip(first, second, strict=True))
        if is_sorted(labels):
            for by_runtime in (False, True):
                yield Case(world, version, labels, one, two, by_runtime)


def is_sorted(found: Iterable[Any]) -> bool:
    """Whether these are the first ones of all their permutations: one of those that are alike."""
    return all(one <= other for one, other in itertools.pairwise(found))


def _newborn(world: World) -> Iterator[list[Outside]]:
    """Each pod, and each container of a pod of the world, that can appear."""
    for pod in NEWBORN:
        yield [Make(pod), Make(f"{pod}/x8"), Enter(f"{pod}/x8")]
    for pod in sorted({one.partition("/")[0] for one in world.cgroups}):
        yield [Make(f"{pod}/x7"), Enter(f"{pod}/x7")]
