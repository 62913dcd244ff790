"""Every history of tiny nodes with two CPUs: each pair of specs, each single fault at each write.

Complete here: all classes of faults beside an exclusive container with a sandbox; what can be lost
where exclusive containers are in QoS classes. `make exhaustive` has the other worlds, and 3 CPUs.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice, permutations, product

import pytest

from numapin_api.cpuset import CpuSet
from numapin_campaigns.histories.actions import Assign, History, Make, Name, Overwrite, Own, Pass
from numapin_campaigns.histories.node import Node
from numapin_campaigns.histories.replay import Replay
from numapin_campaigns.histories.search import broken_law
from numapin_campaigns.histories.worlds.small_worlds import CLASSES, WORLDS, Case, World, cases
from numapin_campaigns.histories.worlds.start_states import SHAPES, histories, states
from numapin_campaigns.laws.writes import BrokenLawError
from numapin_enforcer.cgroups.write import Write

COMPLETE = [(fault, "sandbox", version) for fault in CLASSES for version in (1, 2)]
COMPLETE += [(fault, "in classes", 2) for fault in ("kill", "hung", "meddle")]
STATES = 16
"""Of so many start states one is played here."""


def first_broken(every: Iterable[History]) -> tuple[History, Exception] | None:
    played, replay = 0, Replay()
    for history in every:
        played += 1
        if problem := replay.broken_law(history):
            return history, problem
    assert played, "there is no such history"
    return None


def of_class(fault: str, world: str, version: int) -> Iterable[History]:
    for case in cases(WORLDS[world], version, 2):
        yield from CLASSES[fault](case)


def from_states(world: World, version: int, cpus: int, step: int) -> Iterable[History]:
    for masks in islice(states(world, version, cpus), 0, None, step):
        yield from histories(world, version, cpus, masks)


@pytest.mark.parametrize(("fault", "world", "version"), COMPLETE)
def test_no_fault_at_any_write_breaks_a_law(fault: str, world: str, version: int) -> None:
    assert first_broken(of_class(fault, world, version)) is None


@pytest.mark.parametrize("version", [1, 2])
def test_no_start_state_breaks_a_law(version: int) -> None:
    assert first_broken(from_states(SHAPES["one"], version, 2, STATES)) is None


@pytest.mark.parametrize(
    ("fault", "step"), [("hung", 5), ("drift", 25), ("meddle", 5), ("kill after a refusal", 1)]
)
def test_a_replay_finds_what_the_history_alone_shows(
    fault: str, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With an enforcer that breaks a law in some of them."""
    monkeypatch.setattr("numapin_enforcer.cgroups.apply._Left._still_has", lambda self, one: False)
    replay = Replay()
    for one in islice(of_class(fault, "in classes", 2), 0, None, step):
        assert repr(replay.broken_law(one)) == repr(broken_law(one))


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("version", [1, 2])
def test_cpus_are_alike(version: int, world: str) -> None:
    """The writes of a pass are the same but for the numbers of the CPUs."""
    for case, places in product(cases(WORLDS[world], version, 2), permutations(range(2))):
        one, two = _renamed(case.one, places), _renamed(case.two, places)
        renamed = replace(case, one=one, two=two)
        assert writes(renamed) == [(path, _moved(cpus, places)) for path, cpus in writes(case)]


def writes(case: Case) -> list[tuple[str, CpuSet]]:
    """The cgroup and the CPUs of each write of the pass for the second spec."""
    node, found = Node(case.history()), list[tuple[str, CpuSet]]()

    def note(one: Write) -> None:
        assert isinstance(one.value, CpuSet)
        found.append((one.path, one.value))

    for action in case.second().actions:
        node.play(action)
        if action == case.two:
            node.kernel.after_write = note
    return found


def _renamed(spec: Assign, places: Sequence[int]) -> Assign:
    owned = (replace(one, cpus=_renamed_list(one.cpus, places)) for one in spec.containers)
    return Assign(_renamed_list(spec.shared, places), tuple(owned))


def _renamed_list(cpus: str, places: Sequence[int]) -> str:
    return str(_moved(CpuSet.parse(cpus), places))


def _moved(cpus: CpuSet, places: Sequence[int]) -> CpuSet:
    return CpuSet(places[cpu] for cpu in cpus)


def test_the_search_sees_what_a_write_without_effect_can_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("numapin_enforcer.cgroups.apply._Left._still_has", lambda self, one: False)
    found = first_broken(of_class("meddle", "in classes", 2))
    assert found is not None
    assert isinstance(found[1], BrokenLawError)
    assert found[1].law == "I1"


def test_a_class_that_is_overwritten_while_containers_change_places() -> None:
    """The second container stays where it is alone, not on the CPU that the first one gets back."""
    made = (Make("e1"), Make("b2"), Make("e1/a1"), Make("b2/b2"), Name("e1/a1"))
    one = Assign("0", (Own("e1", "a", "1-2"),))
    two = Assign("0", (Own("e1", "a", "1"), Own("b2", "b", "2")))
    actions = (*made, one, Pass(), Overwrite("besteffort", "2"), two)
    assert broken_law(History(2, "cgroupfs", 3, 1, actions)) is None


def containers_with_every_cpu(besteffort: CpuSet) -> Iterable[History]:
    """Two containers have three CPUs between them; the first pass, without a failing write."""
    for one, *pods in product(range(1, 7), range(8), range(8)):
        owned = (one, 7 - one)
        if any(own & ~pod for own, pod in zip(owned, pods, strict=True)):
            continue
        masks = {"burstable": 0, "besteffort": besteffort.mask}
        masks |= dict(zip(("g1", "g2", "g1/a1", "g2/b2"), (*pods, *owned), strict=True))
        yield from (
            history
            for history in histories(SHAPES["two pods"], 1, 3, masks)
            if history.actions[-1] == Pass()
        )


@pytest.mark.parametrize(
    ("besteffort", "is_broken"),
    [
        pytest.param(CpuSet((0,)), False, id="a class has a CPU, as that of the enforcer's pod"),
        pytest.param(CpuSet((2,)), False, id="it has another CPU"),
        pytest.param(CpuSet(), True, id="no other cgroup has any CPU"),
    ],
)
def test_containers_with_every_cpu_between_them_on_v1(besteffort: CpuSet, is_broken: bool) -> None:
    """The one known exception: the first pass parks a container on a CPU of another.

    Nothing says what the containers held, and no CPU is left to park on. On a node whose enforcer
    is a pod that cannot be: the cgroup of that pod, or its class, has a CPU.
    """
    broken = [
        problem
        for history in containers_with_every_cpu(besteffort)
        if (problem := broken_law(history))
    ]
    assert bool(broken) == is_broken
