"""The plan of a chaos run with moves follows from its seed and holds every kind of fault."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numapin_campaigns.moves.plan import (
    FAULTS,
    LEAST_ROUNDS,
    Move,
    Resize,
    Stage,
    make_moves_plan,
)

SEEDS = st.integers(0, 2**32)
ROUNDS = st.integers(LEAST_ROUNDS, 60)


@given(seed=SEEDS, rounds=ROUNDS)
def test_equal_seeds_give_equal_runs(seed: int, rounds: int) -> None:
    plan = make_moves_plan(seed, rounds)
    assert plan == make_moves_plan(seed, rounds)
    assert [one.number for one in plan.rounds] == list(range(1, rounds + 1))


def test_other_seeds_give_other_runs() -> None:
    assert len({make_moves_plan(seed, 20).rounds for seed in range(20)}) == 20


@given(seed=SEEDS, rounds=ROUNDS)
def test_each_kind_of_fault_is_there_and_each_victim_comes_back(seed: int, rounds: int) -> None:
    faults = [fault for one in make_moves_plan(seed, rounds).rounds for fault in one.faults]
    assert {one.fault for one in faults} == set(FAULTS)
    assert len(faults) == rounds * 3 // 2
    assert all(len(one.seconds) == len(one.fault.parts) for one in faults)
    assert all(seconds >= 0 for one in faults for seconds in (one.delay_seconds, *one.seconds))


def test_faults_wait_for_each_stage() -> None:
    plans = [make_moves_plan(seed, 20) for seed in range(20)]
    stages = Counter(fault.after for plan in plans for one in plan.rounds for fault in one.faults)
    assert stages.keys() == set(Stage)


@given(seed=SEEDS, rounds=ROUNDS)
def test_moves_go_there_and_back_and_so_do_resizes(seed: int, rounds: int) -> None:
    changes = [one.change for one in make_moves_plan(seed, rounds).rounds]
    moves = [one.to for one in changes if isinstance(one, Move)]
    assert moves == [number % 2 for number in range(len(moves))]
    assert moves
    amounts = [one.cpu for one in changes if isinstance(one, Resize)]
    assert set(amounts[1::2]) == {"1"}
    assert set(amounts[::2]) == {"2", "1500m"}
    assert len(amounts) % 2 == 0


@given(seed=SEEDS, rounds=ROUNDS)
def test_no_move_is_made_while_a_container_has_only_its_memory(seed: int, rounds: int) -> None:
    changes = [one.change for one in make_moves_plan(seed, rounds).rounds]
    after = [changes[one + 1] for one, each in enumerate(changes) if each == Resize("1500m")]
    assert set(after) == {Resize("1")}


def test_moves_are_also_made_while_a_container_has_two_cpus() -> None:
    plans = [[one.change for one in make_moves_plan(seed, 20).rounds] for seed in range(20)]
    assert any(
        isinstance(changes[one + 1], Move)
        for changes in plans
        for one, each in enumerate(changes)
        if each == Resize("2")
    )


def test_too_few_rounds_are_refused() -> None:
    with pytest.raises(ValueError, match="7 rounds are too few"):
        make_moves_plan(1, LEAST_ROUNDS - 1)
