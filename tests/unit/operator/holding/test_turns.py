"""Whose turn it is: priorities and ages, and big pods that do not starve, on a model of nodes."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from numapin_operator.holding.turns import PATIENCE_SECONDS, Patience, give_places
from numapin_operator.observe.holding.held_pod import HeldPod
from numapin_operator.placement import pod_cpus
from support.values.held_pods import held_view


@dataclass
class ModelPlaces:
    """Nodes with a number of CPUs, packed; implements `Places`."""

    sizes: dict[str, int]
    given: dict[str, list[HeldPod]] = field(default_factory=dict)

    def free(self, node: str) -> int:
        return self.sizes[node] - sum(pod_cpus(one.pod) for one in self.given.get(node, []))

    def open_to(self, pod: HeldPod) -> Iterable[str]:
        return sorted(self.sizes, key=lambda node: (self.free(node), node))

    def place(self, pod: HeldPod, node: str) -> bool:
        if pod_cpus(pod.pod) > self.free(node):
            return False
        self.given.setdefault(node, []).append(pod)
        return True

    def soonest(self, pod: HeldPod) -> str | None:
        fitting = (node for node in self.sizes if self.may_fit(pod, node))
        return min(fitting, key=lambda node: (-self.free(node), node), default=None)

    def may_fit(self, pod: HeldPod, node: str) -> bool:
        return pod_cpus(pod.pod) <= self.sizes.get(node, 0)


def given_places(
    pods: Iterable[HeldPod], places: ModelPlaces, patience: Patience, now: float = 0.0
) -> dict[str, str | None]:
    steps = give_places(pods, places, patience, now)
    return {step[0].pod.name: step[1] for step in steps if step is not None}


def at(name: str, cpu: int, minute: int = 0, priority: int = 0) -> HeldPod:
    created = f"2026-01-01T00:{minute:02}:00Z"
    return held_view(name, str(cpu), bound=created, priority=priority)


def test_the_older_pod_comes_first_and_a_higher_priority_before_it() -> None:
    young, old, important = at("young", 4, 2), at("old", 4, 1), at("important", 4, 3, priority=5)
    assert given_places([young, old], ModelPlaces({"n": 4}), Patience()) == {
        "old": "n",
        "young": None,
    }
    found = given_places([young, old, important], ModelPlaces({"n": 4}), Patience())
    assert found == {"important": "n", "old": None, "young": None}


def test_younger_pods_fill_gaps_until_the_first_has_waited_enough() -> None:
    big, small, patience = at("big", 8, 1), at("small", 2, 2), Patience()

    def half_full() -> ModelPlaces:
        return ModelPlaces({"n": 8}, {"n": [at("runs", 4)]})

    assert given_places([big, small], half_full(), patience, 0.0)["small"] == "n"
    late = PATIENCE_SECONDS
    assert given_places([big, small], half_full(), patience, late - 1)["small"] == "n"
    assert given_places([big, small], half_full(), patience, late)["small"] is None
    assert given_places([big, small], ModelPlaces({"n": 8}), patience, late)["big"] == "n"


def test_only_one_node_is_kept() -> None:
    patience, late = Patience(), PATIENCE_SECONDS
    pods = [at("big", 8, 1), at("huge", 8, 2), at("small", 2, 3)]
    runs = {"a": [at("r", 4)], "b": [at("s", 4)]}
    given_places(pods, ModelPlaces({"a": 8, "b": 8}, dict(runs)), patience, 0.0)
    found = given_places(pods, ModelPlaces({"a": 8, "b": 8}, dict(runs)), patience, late)
    assert found == {"big": None, "huge": None, "small": "b"}


def test_a_pod_that_fits_nowhere_ever_keeps_nothing() -> None:
    patience = Patience()
    for now in (0.0, PATIENCE_SECONDS):
        found = given_places(
            [at("giant", 99, 1), at("small", 2, 2)], ModelPlaces({"n": 8}), patience, now
        )
        assert found == {"giant": None, "small": "n"}


def test_a_kept_node_that_is_gone_is_replaced() -> None:
    big, patience = at("big", 8, 1), Patience()
    full = {"a": [at("r", 4)], "b": [at("s", 6)]}
    given_places([big], ModelPlaces({"a": 8, "b": 8}, full), patience, 0.0)
    assert patience.kept == {big.uid: "a"}
    given_places([big], ModelPlaces({"b": 8}, {"b": full["b"]}), patience, 1.0)
    assert patience.kept == {big.uid: "b"}
    assert patience.since == {big.uid: 0.0}, "it has not begun to wait again"


def test_what_waits_no_more_is_forgotten() -> None:
    big, patience = at("big", 8, 1), Patience()
    given_places([big], ModelPlaces({"n": 8}, {"n": [at("r", 4)]}), patience)
    given_places([], ModelPlaces({"n": 8}), patience)
    assert (patience.since, patience.kept) == ({}, {})


PODS = st.lists(st.tuples(st.integers(1, 9), st.integers(0, 5), st.integers(0, 2)), max_size=8).map(
    lambda drawn: [at(f"p{n}", cpu, age, priority) for n, (cpu, age, priority) in enumerate(drawn)]
)


@given(PODS, st.lists(st.integers(1, 9), min_size=1, max_size=3))
def test_no_node_is_overfull_and_who_waits_did_not_fit(
    pods: list[HeldPod], sizes: list[int]
) -> None:
    places = ModelPlaces({f"n{n}": size for n, size in enumerate(sizes)})
    found = given_places(pods, places, Patience())
    assert found.keys() == {one.pod.name for one in pods}
    for node in places.sizes:
        assert places.free(node) >= 0
    for one in pods:
        if found[one.pod.name] is None:
            assert all(pod_cpus(one.pod) > places.free(node) for node in places.sizes)


@given(st.integers(2, 8), st.integers(1, 5), st.lists(st.integers(1, 3), min_size=60, max_size=60))
def test_a_big_pod_does_not_starve(size: int, lasts: int, stream: list[int]) -> None:
    """Small pods come for ever, one a step of 10 s; each runs for some steps."""
    big, patience = at("big", size, 0), Patience()
    waiting, running = list[HeldPod](), list[tuple[int, HeldPod]]()
    for step, cpu in enumerate(stream):
        running = [(end, pod) for end, pod in running if end > step]
        waiting.append(at(f"s{step}", min(cpu, size), 1 + step % 59))
        places = ModelPlaces({"n": size}, {"n": [pod for _, pod in running]})
        queue = [*waiting, big] if step else waiting  # the first small pod is there before it
        found = given_places(queue, places, patience, 10.0 * step)
        placed = [one for one in waiting if found[one.pod.name] is not None]
        running += [(step + lasts, one) for one in placed]
        waiting = [one for one in waiting if one not in placed]
        if found.get("big"):
            assert step <= 1 + PATIENCE_SECONDS / 10 + lasts
            return
    raise AssertionError("it waits for ever")
