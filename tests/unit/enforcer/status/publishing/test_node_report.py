"""The report goes into the NodeReport while there is one, and else into the NodeAssignment."""

import pytest

from numapin_api.conditions.reasons import Obstacle
from numapin_client.errors import ForbiddenError, NotFoundError
from numapin_enforcer.status.publisher import CREATED_SECONDS, DELETED_SECONDS, Publisher
from numapin_enforcer.status.publishing.beside import AGAIN_SECONDS
from support.fakes.manual_clock import ManualClock
from support.fakes.status_store import OwnStores
from support.fakes.worlds.reports import HARDWARE, assignment, report


async def test_nothing_is_written_before_it_is_known_where(
    api: OwnStores, publisher: Publisher, clock: ManualClock
) -> None:
    publisher.publish(report())
    await clock.advance(60)
    assert (api.assignment.patches, api.report.patches) == ([], [])
    assert publisher.problem == "it is not known yet whether this node has a NodeReport"


async def test_a_node_report_and_its_hardware_are_written_where_they_belong(
    api: OwnStores, reporting: Publisher
) -> None:
    assert api.assignment.patches == []
    status = api.report.body["status"]
    assert status["observed"] == status["enforced"] == {"uid": "u1", "generation": 1}
    assert [one["observedGeneration"] for one in status["conditions"]] == [1, 1, 1]
    assert status.keys() == {"observed", "enforced", "conditions", "pools", "driftCount"}
    assert api.topology.patches == [HARDWARE]
    assert reporting.problem == ""


async def test_the_hardware_is_written_when_it_or_the_object_changes(
    api: OwnStores, reporting: Publisher, clock: ManualClock
) -> None:
    reporting.publish(report(drifts=1))
    await clock.advance(5)
    assert len(api.topology.patches) == 1
    reporting.publish(report(drifts=1, topology=HARDWARE | {"offline": "3"}))
    await clock.run_tasks()
    assert api.topology.patches[1:] == [{"offline": "3"}]
    reporting.topology.observe(api.topology.edit(offline="1"))
    await clock.run_tasks()
    assert api.topology.patches[2:] == [{"offline": "3"}]


async def test_a_refused_topology_keeps_no_report_back(
    api: OwnStores, publisher: Publisher, clock: ManualClock
) -> None:
    api.topology.refusals = [ForbiddenError("PATCH x", 403, {"message": "no"})] * 50
    api.assignment.edit(observedGeneration=1, topology=HARDWARE)
    publisher.observe(api.assignment.body)
    publisher.observe_report(api.report.body)
    publisher.topology.observe(api.topology.body)
    for generation in (1, 2, 3):
        publisher.publish(report(generation))
        await clock.advance(10)
        assert api.report.body["status"]["observed"]["generation"] == generation
    assert "no" in publisher.problem
    assert "observedGeneration" not in api.assignment.body["status"]


@pytest.mark.parametrize("is_fresh", [True, False], ids=["fresh", "upgraded enforcer"])
async def test_without_a_node_report_a_status_is_written(
    api: OwnStores, publisher: Publisher, clock: ManualClock, is_fresh: bool
) -> None:
    if not is_fresh:
        publisher.observe(api.assignment.edit(observedGeneration=1, driftCount=4))
    publisher.observe_report(None)
    publisher.publish(report())
    await clock.run_tasks()
    assert bool(api.assignment.patches) is not is_fresh
    await clock.advance(CREATED_SECONDS)
    assert api.assignment.body["status"]["observedGeneration"] == 1
    assert api.assignment.body["status"]["topology"] == HARDWARE


async def test_a_node_report_that_is_created_beside_a_new_assignment_is_waited_for(
    api: OwnStores, publisher: Publisher, clock: ManualClock
) -> None:
    publisher.observe(None)
    publisher.observe_report(None)
    await clock.advance(600)
    publisher.observe(api.assignment.body)
    publisher.publish(report())
    await clock.advance(CREATED_SECONDS / 2)
    assert publisher.observe_report(api.report.body)
    publisher.publish(report())
    await clock.advance(600)
    assert (api.assignment.patches, len(api.report.patches)) == ([], 1)


OPERATORS = {"refused": 1, "outdated": 2, "refusals": [{"podUID": "x"}], "refusalsOmitted": 1}


async def test_an_upgraded_operator_finds_no_old_status_after_the_first_report(
    api: OwnStores, publisher: Publisher, clock: ManualClock
) -> None:
    publisher.observe_report(None)
    publisher.publish(report(drifts=3))
    await clock.advance(CREATED_SECONDS)
    publisher.observe(api.assignment.edit(**OPERATORS))
    assert publisher.observe_report(api.report.body)
    assert publisher.reported["driftCount"] == 3
    await clock.advance(60)
    assert api.report.patches == []  # the next report builds on what is there
    publisher.publish(report(drifts=3))
    await clock.advance(60)
    assert api.report.body["status"]["driftCount"] == 3
    assert api.assignment.body["status"] == OPERATORS


async def test_the_old_status_stays_until_a_report_about_that_object(
    api: OwnStores, publisher: Publisher, clock: ManualClock
) -> None:
    publisher.observe(api.assignment.edit(observedGeneration=1))
    publisher.observe_report(api.report.edit(observed={"uid": "u0", "generation": 1}))
    await clock.advance(60)
    assert api.assignment.patches == []


async def test_two_enforcers_do_not_write_against_each_other_for_ever(
    api: OwnStores, reporting: Publisher, clock: ManualClock
) -> None:
    for _ in range(600):
        if "observedGeneration" not in api.assignment.body.get("status", {}):
            reporting.observe(api.assignment.edit(observedGeneration=7))
        await clock.advance(1)
    assert 1 < len(api.assignment.patches) < 60
    assert AGAIN_SECONDS[1] == 300.0


async def test_without_its_node_report_it_goes_back_to_the_status(
    api: OwnStores, reporting: Publisher, clock: ManualClock
) -> None:
    reporting.observe(api.assignment.edit(**OPERATORS))
    reporting.observe_report(None)
    await clock.advance(DELETED_SECONDS - 0.1)
    assert api.assignment.patches == []
    await clock.advance(0.1)
    assert api.assignment.body["status"].items() >= OPERATORS.items()
    assert api.assignment.body["status"]["observedGeneration"] == 1
    reporting.publish(report(2, refused=9))
    await clock.run_tasks()
    assert api.assignment.body["status"].items() >= OPERATORS.items()  # of a spec with lines


async def test_one_that_was_deleted_and_created_again_is_written_again(
    api: OwnStores, reporting: Publisher, clock: ManualClock
) -> None:
    reporting.observe_report(None)
    await clock.advance(DELETED_SECONDS / 2)
    api.report.uid = "r2"
    api.report.body = {"metadata": {"name": "n", "uid": "r2", "resourceVersion": "50"}}
    assert reporting.observe_report(api.report.body)
    reporting.publish(report())
    await clock.advance(60)
    assert api.assignment.patches == []
    assert api.report.body["status"]["observed"]["generation"] == 1


async def test_a_write_to_an_object_that_is_gone_is_no_problem(
    api: OwnStores, reporting: Publisher, clock: ManualClock
) -> None:
    api.report.refusals = [NotFoundError("PATCH x", 404, {})]
    reporting.publish(report(2))
    await clock.run_tasks()
    assert reporting.problem == ""


async def test_the_mark_of_the_operator_is_overwritten(
    api: OwnStores, reporting: Publisher, clock: ManualClock
) -> None:
    """An enforcer that was silent is back."""
    conditions = list(api.report.body["status"]["conditions"])
    conditions[0] = conditions[0] | {"status": "Unknown", "reason": "EnforcerSilent"}
    reporting.observe_report(api.report.edit(conditions=conditions))
    await clock.run_tasks()
    assert api.report.body["status"]["conditions"][0]["status"] == "True"
    assert api.report.patches[1:][0].keys() == {"conditions"}


async def test_what_an_older_crd_drops_is_not_sent_for_ever(
    api: OwnStores, publisher: Publisher, clock: ManualClock
) -> None:
    api.report.prunes, api.topology.prunes = {"driftCount"}, {"numaNodes"}
    publisher.observe_report(api.report.body)
    publisher.topology.observe(api.topology.body)
    publisher.publish(report(drifts=3))
    for _ in range(5):
        await clock.advance(2)
        publisher.observe_report(api.report.body)
        publisher.topology.observe(api.topology.body)
    assert (len(api.report.patches), len(api.topology.patches)) == (1, 1)


async def test_defaults_of_the_crd_are_not_removed_for_ever(
    api: OwnStores, publisher: Publisher, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    """An object without its status has 0 where an enforcer that reports has a number."""
    api.assignment.defaults = {"observedGeneration": 0, "driftCount": 0, "refused": 0}
    api.report.defaults = {"driftCount": 0}
    publisher.observe(api.assignment.edit(observedGeneration=4, driftCount=7))
    publisher.observe_report(api.report.edit(driftCount=0))
    assert publisher.reported["driftCount"] == 7
    publisher.publish(report())
    await clock.advance(60)
    publisher.observe(api.assignment.body)
    publisher.observe_report(api.report.body)
    await clock.advance(600)
    assert api.assignment.body["status"]["observedGeneration"] == 0
    assert (len(api.assignment.patches), len(api.report.patches)) == (1, 1)
    assert caplog.messages == []


async def test_a_race_with_another_writer_is_not_taken_for_an_older_crd(
    api: OwnStores, reporting: Publisher, clock: ManualClock
) -> None:
    api.report.edit(notRunning=["ghost"])
    reporting.publish(report(drifts=1))
    await clock.run_tasks()
    reporting.observe_report(api.report.body)
    await clock.run_tasks()
    assert "notRunning" not in api.report.body["status"]


async def test_a_blind_report_claims_no_line_in_force(
    api: OwnStores, reporting: Publisher, clock: ManualClock
) -> None:
    stuck = Obstacle("CgroupsUnreadable", "no")
    reporting.publish(report(2, assignment("a", 2), blind=True, stalled=stuck))
    await clock.run_tasks()
    status = api.report.body["status"]
    assert status["observed"]["generation"] == 2
    assert status["enforced"]["generation"] == 1
    assert "notRunning" not in status
    assert status["conditions"][0]["reason"] == "CgroupsUnreadable"


async def test_a_failed_pass_leaves_all_but_the_conditions(
    api: OwnStores, reporting: Publisher, clock: ManualClock
) -> None:
    reporting.publish(report(1, assignment("a", 2), running=("a",)))
    await clock.run_tasks()
    before = dict(api.report.body["status"])
    reporting.publish(report(2, failed=True, stalled=Obstacle("InternalError", "x")))
    await clock.run_tasks()
    after = api.report.body["status"]
    changed = {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
    assert changed == {"observed", "conditions"}
    assert after["enforced"]["generation"] == 1
