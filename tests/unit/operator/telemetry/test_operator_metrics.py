"""The operator's metrics, read from its real parts on fakes."""

import asyncio

import pytest

from numapin_client.errors import ClientError, ConflictError, ForbiddenError, UnavailableError
from numapin_client.resources import Key
from numapin_daemon.telemetry.exposition import expose
from numapin_operator.nodes.decide import NodePicture
from numapin_operator.nodes.decide.present import present_machine
from numapin_operator.policies.status import NodeOutcome, Phase
from numapin_operator.policies.tally import Tally
from numapin_operator.queues.workqueue import WorkQueue
from numapin_operator.telemetry.numa_nodes import NumaNodes
from numapin_operator.telemetry.states import NodesState
from numapin_operator.telemetry.table import METRICS, NUMA_ALLOCATABLE, NUMA_AVAILABLE
from support.fakes.cluster import FakeCluster
from support.fakes.operator import Operator, operator_of_one_node, report
from support.real.telemetry.prometheus import parse


def values(operator: Operator) -> dict[str, dict[str, float]]:
    return parse(expose(operator.controller._outputs.meter.collect()))


@pytest.fixture
async def operator() -> Operator:
    return await operator_of_one_node(FakeCluster())


async def test_plans_and_writes_are_counted(operator: Operator) -> None:
    before = values(operator)
    operator.add_pod("fits")
    await operator.work_until_idle()
    after = values(operator)
    writes, created = "numapin_assignment_writes_total", 'operation="create",result="written"'
    assert after[writes][created] == before[writes][created] == 1
    replaced = 'operation="replace",result="written"'
    assert after[writes][replaced] == before[writes][replaced] + 1
    assert after["numapin_plan_seconds_count"][""] > before["numapin_plan_seconds_count"][""]


async def test_a_refusal_is_counted_once_however_often_its_node_is_planned(
    operator: Operator,
) -> None:
    operator.add_pod("too-large", "500")
    await operator.work_until_idle()
    operator.state.wake_all()
    await operator.work_until_idle()
    assert values(operator)["numapin_refusals_total"]['reason="NotEnoughCPUs"'] == 1


async def test_pods_that_come_and_go_add_no_series(operator: Operator) -> None:
    async def pods(first: int, count: int) -> None:
        for number in range(first, first + count):
            name = f"pod-{number}"
            operator.add_pod(name, "500" if number % 2 else "2")
            await operator.work_until_idle()
            operator.state.drop_pod(Key(name, "default"), "node-1")
            report(operator.cluster)
            operator.observe()
            await operator.work_until_idle()

    def series() -> dict[str, int]:
        return {name: len(found) for name, found in values(operator).items()}

    await pods(0, 2)
    before = series()
    await pods(2, 20)
    assert values(operator)["numapin_refusals_total"]['reason="NotEnoughCPUs"'] == 11
    assert series() == before


@pytest.mark.parametrize(
    ("error", "result"),
    [
        (ConflictError("x", 409, {}), "stale"),
        (ForbiddenError("x", 403, {}), "refused"),
        (UnavailableError("x", 503, {}), "failed"),
        (ClientError("x"), "failed"),
    ],
    ids=lambda one: type(one).__name__,
)
async def test_a_failed_write_is_counted_by_what_follows_from_it(
    operator: Operator, error: ClientError, result: str
) -> None:
    operator.add_pod("fits")
    operator.cluster.failures.append(error)
    await operator.work_until_idle()
    found = values(operator)["numapin_assignment_writes_total"]
    assert found[f'operation="replace",result="{result}"'] == 1


async def test_a_queue_says_how_long_its_first_node_has_waited() -> None:
    queue = WorkQueue()
    assert (queue.state().waiting, queue.state().oldest_seconds) == (0, 0.0)
    queue.add("one")
    queue.add("two")
    since = queue._others["one"]
    queue.add("one", urgent=True)
    assert queue._urgent["one"] == since, "it has waited since then"
    assert queue.state().waiting == 2
    assert queue.state().oldest_seconds >= 0
    assert await queue.take() == "one"
    queue.failed("one")
    assert (queue.state().waiting, queue.state().delayed) == (1, 1)
    await asyncio.sleep(0)


def test_nodes_are_counted_by_how_far_their_policies_are() -> None:
    tally = Tally()
    for number, phase in enumerate((Phase.IN_FORCE, Phase.IN_FORCE, Phase.NOT_SERVED)):
        tally.judge(f"n{number}", NodeOutcome(f"n{number}", "p", 1, phase, refused=2, outdated=1))
    assert tally.state() == NodesState({"in_force": 2, "not_served": 1}, refused=6, outdated=3)
    tally.judge("n0", None)
    assert tally.state().by_state == {"in_force": 1, "not_served": 1}


async def test_what_numa_nodes_have_left_is_measured_until_the_node_is_given_up(
    operator: Operator,
) -> None:
    measured = NumaNodes()

    def measure(picture: NodePicture) -> None:
        measured.note(picture.name, present_machine(picture))

    operator.controller._outputs.assigned = measure
    operator.add_pod("a", "3")
    await operator.work_until_idle()
    labels = ("node-1", "0", "cpu", "cpu")
    assert measured.read() == {NUMA_ALLOCATABLE: {labels: 6.0}, NUMA_AVAILABLE: {labels: 3.0}}
    del operator.cluster.policies["policy"]
    operator.observe()
    await operator.work_until_idle()
    assert measured.read() == {NUMA_ALLOCATABLE: {}, NUMA_AVAILABLE: {}}


def test_every_metric_has_a_name_of_its_own() -> None:
    assert len({one.name for one in METRICS}) == len(METRICS)
    named = {"node", "node_name", "pod", "namespace"}
    of_nodes = [one for one in METRICS if named & set(one.labels)]
    assert of_nodes == [NUMA_ALLOCATABLE, NUMA_AVAILABLE]  # only with --numa-metrics
