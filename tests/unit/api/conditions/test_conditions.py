from numapin_api.conditions.model import Condition, find, merge
from numapin_api.conditions.reasons import ConditionType, Reason, Verdict

READY = Condition(
    type="Ready",
    status="True",
    observed_generation=1,
    last_transition_time="2026-01-01T00:00:00Z",
    reason="Enforced",
)
NOW = "2026-01-02T00:00:00Z"


def test_the_time_stays_while_the_status_does() -> None:
    (kept,) = merge([READY], [Verdict(ConditionType.READY, True, Reason.IN_FORCE, "all")], 2, NOW)
    assert kept.last_transition_time == READY.last_transition_time
    assert (kept.reason, kept.message, kept.observed_generation) == ("InForce", "all", 2)


def test_the_time_changes_with_the_status() -> None:
    (turned,) = merge([READY], [Verdict(ConditionType.READY, False, Reason.APPLYING)], 2, NOW)
    assert (turned.status, turned.last_transition_time) == ("False", NOW)


def test_foreign_conditions_stay_and_the_order_is_fixed() -> None:
    foreign = READY.model_copy(update={"type": "Audited"})
    verdicts = [
        Verdict(ConditionType.STALLED, False, Reason.NOT_STALLED),
        Verdict(ConditionType.READY, True, Reason.IN_FORCE),
    ]
    merged = merge([foreign], verdicts, 1, NOW)
    assert [one.type for one in merged] == ["Audited", "Ready", "Stalled"]
    assert merge([foreign], reversed(verdicts), 1, NOW) == merged
    assert find(merged, ConditionType.STALLED) == merged[2]
    assert find(merged, ConditionType.RECONCILING) is None


def test_a_message_may_be_any_text() -> None:
    for text in ("writing kubepods/\udcff\udcfe", "x" * 100_000):
        (made,) = merge([], [Verdict(ConditionType.READY, False, Reason.APPLYING, text)], 1, NOW)
        assert Condition.model_validate(made.to_wire()) == made
        assert made.message.startswith(text[:17])
