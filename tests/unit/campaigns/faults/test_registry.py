"""Every fault is in the registry, and each campaign has those that it is able to have."""

import pkgutil
from itertools import combinations

import numapin_campaigns.faults as room
from numapin_campaigns.chaos import plan as chaos
from numapin_campaigns.faults.registry import ALL, KINDS
from numapin_campaigns.moves import plan as moves
from numapin_campaigns.parts.part import AGENTS
from numapin_campaigns.steps.passing import VICTIMS


def test_each_module_of_the_room_is_a_kind_of_fault() -> None:
    names = {one.name for one in pkgutil.iter_modules(room.__path__)}
    assert names - {"registry", "target"} == {one.__name__.rpartition(".")[2] for one in KINDS}
    assert sorted(map(str, ALL)) == sorted(str(one) for kind in KINDS for one in kind.FAULTS)
    assert len({one.name for one in ALL}) == len(ALL)


def test_each_fault_shows_in_a_campaign() -> None:
    assert set(ALL) == {*chaos.FAULTS, *moves.FAULTS}
    assert all(one.every for one in chaos.FAULTS), "it says how often it comes"
    assert all(one.parts for one in moves.FAULTS)


def test_steps_kill_every_choice_of_parts() -> None:
    choices = [one for number in (1, 2, 3) for one in combinations(AGENTS, number)]
    assert sorted(VICTIMS) == sorted(choices)


def test_a_seed_that_was_written_down_repeats_its_run() -> None:
    """The order of the registry decides what a seed means: a new fault comes last."""
    pods = [f"{one.after} {one.fault}" for one in chaos.make_plan(7, 20).faults]
    assert pods[:4] == ["2 OverwriteShared", "3 KillOperator", "3 ReadOnlyStateFolder", "4 IoUring"]
    rounds = moves.make_moves_plan(7, 8).rounds
    assert [[f"{one.fault} {one.after}" for one in each.faults] for each in rounds][:3] == [
        ["KillEnforcer 0", "RestartApiServer 3"],
        ["KillStandby 4", "KillOperator 3"],
        ["KillEnforcerAndStandby 4", "KillKubelet 1"],
    ]
