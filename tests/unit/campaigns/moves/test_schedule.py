"""When parts are killed, stopped and started while a change is made."""

from collections.abc import Callable

from numapin_campaigns.frame.plan import PlannedFault
from numapin_campaigns.moves.plan import FAULTS, Stage, make_moves_plan
from numapin_campaigns.moves.schedule import STOPPED_SECONDS, Action, Do, Schedule

BY_NAME = {one.name: one for one in FAULTS}
KILL_OPERATOR = PlannedFault(BY_NAME["KillOperator"], Stage.BEGUN, (4.0,), 1.0)
KILL_BOTH = PlannedFault(BY_NAME["KillOperatorAndEnforcer"], Stage.ASKED, (2.0, 3.0))
KILL_STANDBY = PlannedFault(BY_NAME["KillStandby"], Stage.ASKED, (2.0,))
STOP = PlannedFault(BY_NAME["StopEnforcer"], Stage.ASKED, (1.0,))


def yes() -> bool:
    return True


def taken(
    schedule: Schedule, now: float, stage: Stage, can_notice: Callable[[], bool]
) -> list[Action]:
    """What is due, and hit at once."""
    found = schedule.take_due(now, stage, can_notice)
    for action in found:
        if action.do is not Do.START:
            schedule.note_hit(action.part, now)
    return found


def no() -> bool:
    return False


def test_a_fault_waits_for_its_stage_and_its_delay_and_its_victim_comes_back() -> None:
    schedule = Schedule([KILL_OPERATOR])
    assert taken(schedule, 0, Stage.ASKED, yes) == []
    assert taken(schedule, 10, Stage.BEGUN, yes) == []
    assert taken(schedule, 11, Stage.BEGUN, yes) == [Action(Do.KILL, "operator")]
    assert taken(schedule, 14.9, Stage.BEGUN, yes) == []
    assert taken(schedule, 15, Stage.BEGUN, yes) == [Action(Do.START, "operator")]
    assert schedule.done
    assert schedule.made == [(KILL_OPERATOR.fault, Stage.BEGUN)]


def test_a_part_is_away_for_the_planned_time_from_when_it_was_hit() -> None:
    schedule = Schedule([KILL_STANDBY])
    assert schedule.take_due(0, Stage.ASKED, yes) == [Action(Do.KILL, "standby")]
    assert schedule.take_due(9, Stage.ASKED, yes) == []
    schedule.note_hit("standby", 9)
    assert schedule.take_due(10.9, Stage.ASKED, yes) == []
    assert schedule.take_due(11, Stage.ASKED, yes) == [Action(Do.START, "standby")]


def test_a_stage_that_is_skipped_counts_as_reached() -> None:
    schedule = Schedule([KILL_OPERATOR])
    assert taken(schedule, 0, Stage.DECIDED, yes) == []
    assert taken(schedule, 1, Stage.DECIDED, yes) == [Action(Do.KILL, "operator")]
    assert schedule.made == [(KILL_OPERATOR.fault, Stage.DECIDED)]


def test_a_delay_counts_from_when_the_stage_was_first_seen() -> None:
    schedule = Schedule([KILL_OPERATOR])
    taken(schedule, 0, Stage.BEGUN, yes)
    assert taken(schedule, 1, Stage.ASKED, yes) == [Action(Do.KILL, "operator")]


def test_a_victim_that_is_down_is_not_hit_again_before_it_is_back() -> None:
    schedule = Schedule([KILL_BOTH, KILL_OPERATOR])
    both = [Action(Do.KILL, "operator"), Action(Do.KILL, "enforcer")]
    assert taken(schedule, 0, Stage.BEGUN, yes) == both
    assert taken(schedule, 1.5, Stage.BEGUN, yes) == []
    back = [Action(Do.START, "operator"), Action(Do.KILL, "operator")]
    assert taken(schedule, 2, Stage.BEGUN, yes) == back
    assert taken(schedule, 3, Stage.BEGUN, yes) == [Action(Do.START, "enforcer")]


def test_the_enforcer_is_only_stopped_while_a_standby_can_notice_it() -> None:
    schedule = Schedule([STOP])
    assert taken(schedule, 0, Stage.ASKED, no) == []
    assert taken(schedule, 1, Stage.ASKED, yes) == [Action(Do.STOP, "enforcer")]
    assert taken(schedule, 1 + STOPPED_SECONDS, Stage.ASKED, yes) == []
    assert taken(schedule, 2 + STOPPED_SECONDS, Stage.ASKED, yes) == [Action(Do.START, "enforcer")]


def test_no_standby_is_killed_while_the_enforcer_is_stopped() -> None:
    schedule = Schedule([STOP, KILL_STANDBY])
    assert taken(schedule, 0, Stage.ASKED, yes) == [Action(Do.STOP, "enforcer")]
    assert taken(schedule, STOPPED_SECONDS, Stage.ASKED, yes) == []
    back = [Action(Do.START, "enforcer"), Action(Do.KILL, "standby")]
    assert taken(schedule, STOPPED_SECONDS + 1, Stage.ASKED, yes) == back


def test_every_plan_comes_to_its_end_and_each_part_that_was_hit_is_back() -> None:
    for seed in range(50):
        for one in make_moves_plan(seed, 8).rounds:
            schedule, now, hit = Schedule(one.faults), 0.0, set[str]()
            while not schedule.done:
                assert now < 200
                for action in taken(schedule, now, Stage.DECIDED, yes):
                    assert (action.part in hit) is (action.do is Do.START)
                    hit ^= {action.part}
                now += 0.25
            assert hit == set()
            assert len(schedule.made) == len(one.faults)
