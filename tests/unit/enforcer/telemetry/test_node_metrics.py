"""What a pass counts, and what is read of the node."""

from dataclasses import replace
from typing import Any, cast

import pytest

from numapin_api.conditions.reasons import Reason
from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.schema.plain import ContainerStatus
from numapin_daemon.telemetry.metric import Metric
from numapin_daemon.telemetry.process_table import WATCH_AGE
from numapin_enforcer.cgroups.apply import Failure
from numapin_enforcer.cgroups.errors import CgroupRefusedError
from numapin_enforcer.cgroups.write import Step, Write
from numapin_enforcer.pass_values import Converged, Pass
from numapin_enforcer.status.in_force.lack import Lack
from numapin_enforcer.status.in_force.summary import Summary
from numapin_enforcer.telemetry.node_metrics import NodeMetrics
from numapin_enforcer.telemetry.samples.containers import Samples
from numapin_enforcer.telemetry.table import (
    DRIFTS,
    ENFORCES,
    IN_FORCE_SECONDS,
    METRICS,
    MISPINNED,
    PASS_SECONDS,
    WRITES,
)
from support.values.specs_and_trees import assigned, machine, spec, tree

SPEC, ROOT = spec(assigned("exclusive", "4-5")), "kubepods"


def summary(*lacks: Lack, exclusive: bool = True) -> Summary:
    return Summary(
        containers=(ContainerStatus("1", "exclusive", CpuSet((4, 5)), MemSet((0,)), exclusive),),
        lacks=lacks,
    )


class NoSamples(Samples):
    """No container is sampled."""

    def __init__(self) -> None:
        self.foreign = 0

    def take(self, *_: Any) -> None:
        """Take none."""

    def values(self) -> dict[Metric, dict[tuple[str, ...], float]]:
        return {}


class World:
    def __init__(self, known: Any = None) -> None:
        self.samples, self.drifts = NoSamples(), {"Intrusion": 3}
        self.metrics = NodeMetrics(self.samples, lambda: self.drifts, lambda: 12.5, known)
        self.done = Pass(
            began_seconds=1.0,
            ended_seconds=1.002,
            spec=SPEC,
            topology=machine(),
            result=Converged(tree()),
        )

    def passed(self, found: Summary | None = None, **changes: Any) -> None:
        self.metrics.passed(replace(self.done, **changes), found or summary())

    def values(self, metric: Metric) -> dict[tuple[str, ...], float]:
        return dict(
            next(one for one in self.metrics.meter.collect() if one.metric == metric).values
        )

    def times(self, metric: Metric) -> tuple[int, float]:
        family = next(one for one in self.metrics.meter.collect() if one.metric == metric)
        ((_, found),) = family.distributions
        return sum(found.counts), found.total


@pytest.fixture
def world() -> World:
    return World()


def test_a_pass_counts_its_time_and_its_writes(world: World) -> None:
    made, failure = Write(ROOT, CpuSet((0,)), Step.WIDEN), CgroupRefusedError(ROOT, "0", 16, "busy")
    done = Converged(tree(), made=(made,) * 3, failures=(Failure(made, failure),))
    world.passed(result=done)
    world.passed()
    assert world.values(WRITES) == {("made",): 3, ("refused",): 1}
    assert world.times(PASS_SECONDS) == pytest.approx((2, 0.004))


def test_the_page_exists_before_the_first_pass(world: World) -> None:
    assert world.values(ENFORCES) == {(): 0}
    assert world.values(WATCH_AGE) == {("nodeassignments",): 12.5}
    assert world.values(DRIFTS)["Intrusion",] == 3


@pytest.mark.parametrize("mode", ["Static", "None"])
def test_a_released_node_enforces_nothing(world: World, mode: str) -> None:
    world.passed(spec=replace(SPEC, mode=mode))
    assert world.values(ENFORCES) == {(): float(mode == "Static")}


def test_each_new_spec_is_counted_once(world: World) -> None:
    requests = next(one for one in METRICS if "cpu_manager_pinning_requests" in one.name)
    world.passed()
    world.passed()
    assert world.values(requests) == {(): 1}


def test_what_was_accepted_before_the_start_is_not_counted() -> None:
    world = World(SPEC)
    requests = next(one for one in METRICS if "cpu_manager_pinning_requests" in one.name)
    world.passed()
    assert world.values(requests) == {(): 0}
    assert world.times(IN_FORCE_SECONDS)[0] == 0


def test_containers_that_lack_something_are_counted_by_reason(world: World) -> None:
    world.samples.foreign = 2
    lacks = [Lack("container d/p/c", reason, "why") for reason in (Reason.CPUS_SHARED,) * 2]
    unknown = Lack("container d/p/c", cast("Reason", "FromTheFuture"), "why")
    world.passed(summary(*lacks, unknown))
    found = world.values(MISPINNED)
    assert found["CPUsShared",] == found["ForeignTasks",] == 2
    assert found["other",] == 1
    assert found["Applying",] == 0


def test_the_time_until_in_force_begins_with_the_first_pass_that_saw_the_container(
    world: World,
) -> None:
    world.passed(Summary())
    world.passed(summary(exclusive=False), began_seconds=10.0, ended_seconds=10.1)
    world.passed(summary(), began_seconds=10.5, ended_seconds=10.75)
    world.passed(summary(), began_seconds=11.0, ended_seconds=11.5)
    assert world.times(IN_FORCE_SECONDS) == pytest.approx((1, 0.75))


def test_a_container_that_comes_into_force_in_its_first_pass_took_that_pass(world: World) -> None:
    world.passed()
    assert world.times(IN_FORCE_SECONDS) == pytest.approx((1, 0.002))


def test_nothing_grows_with_containers_that_come_and_go(world: World) -> None:
    times = world.metrics._in_force
    for number in range(50):
        one = replace(assigned("exclusive", "4-5"), pod_uid=str(number))
        status = replace(summary().containers[0], pod_uid=str(number))
        world.passed(Summary(containers=(status,)), spec=spec(one))
    assert world.times(IN_FORCE_SECONDS)[0] == 50
    assert len(times._since) == len(times._timed) == 1


def test_every_metric_has_a_name_of_its_own() -> None:
    assert len({one.name for one in METRICS}) == len(METRICS)


def test_pods_that_come_and_go_add_no_series(world: World) -> None:
    def pod(number: int) -> None:
        one = assigned(f"c{number}", "4-5")
        refusal = {
            "podUID": f"refused-{number}",
            "namespace": f"n{number}",
            "pod": f"r{number}",
            "reason": "NotEnoughCPUs",
            "message": "m",
        }
        done = spec(replace(one, pod_uid=f"uid-{number}", namespace=f"n{number}", pod=f"p{number}"))
        lack = Lack(f"container n{number}/p{number}/c", Reason.CPUS_SHARED, "why")
        made = (Write(ROOT, CpuSet((number % 4,)), Step.WIDEN),)
        world.passed(
            summary(lack),
            spec=replace(done, refused=(refusal,)),
            generation=number,
            result=Converged(tree(), made=made),
        )

    def series() -> int:
        families = world.metrics.meter.collect()
        return sum(len(one.values) + len(one.distributions) for one in families)

    pod(0)
    before = series()
    for number in range(1, 40):
        pod(number)
    assert series() == before
