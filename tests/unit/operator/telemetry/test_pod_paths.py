"""How long pods take, on a clock that a test sets."""

from dataclasses import replace
from typing import Any

import pytest

from numapin_api.cpuset import CpuSet
from numapin_api.schema.plain_assignment import (
    ContainerAssignment,
    NodeAssignmentSpec,
    Pools,
    Refusal,
)
from numapin_daemon.telemetry.meter import Meter
from numapin_daemon.telemetry.metric import Metric
from numapin_operator.placement import ContainerKind, ContainerView, PodView
from numapin_operator.telemetry.pod_paths import MOST_PODS, PodPaths
from numapin_operator.telemetry.states import Written
from numapin_operator.telemetry.table import BOUND_TO_IN_FORCE, BOUND_TO_WRITTEN, METRICS
from support.fakes.manual_clock import ManualClock


def pod(uid: str = "1", cpus: int = 1, **more: Any) -> PodView:
    container = ContainerView("c", ContainerKind.APP, cpus * 1000, matched=True)
    return PodView(uid, "d", f"pod-{uid}", "Guaranteed", (container,), node="n", **more)


def spec(*names: str, uid: str = "1") -> NodeAssignmentSpec:
    return NodeAssignmentSpec(
        pools=Pools(reserved=CpuSet((0,)), shared=CpuSet((0,))),
        containers=tuple(
            ContainerAssignment(
                pod_uid=uid,
                namespace="d",
                pod="p",
                container=name,
                cpus=CpuSet((number + 1,)),
                exclusive=True,
            )
            for number, name in enumerate(names)
        ),
    )


def sent(*exclusive: str, uid: str = "1") -> dict[str, Any]:
    containers = [{"podUID": uid, "container": name, "exclusive": True} for name in exclusive]
    return {"metadata": {"name": "n"}, "status": {"containers": containers}}


class World:
    def __init__(self) -> None:
        self.meter, self.clock = Meter(METRICS), ManualClock()
        self.paths = PodPaths(self.meter, self.clock)

    def written(self, spec: NodeAssignmentSpec) -> None:
        now = self.clock.monotonic()
        self.paths.written(Written("n", spec, 7, (now - 0.2, now - 0.1), (now - 0.1, now)))

    def times(self, metric: Metric) -> tuple[int, float]:
        family = next(one for one in self.meter.collect() if one.metric == metric)
        ((_, found),) = family.distributions
        return sum(found.counts), found.total

    @property
    def followed(self) -> int:
        assert {uid for uids in self.paths._written.values() for uid in uids} <= set(
            self.paths._paths
        )
        return len(self.paths._paths)


@pytest.fixture
def world() -> World:
    return World()


def test_a_pod_is_timed_until_it_is_written_and_until_it_is_in_force(world: World) -> None:
    world.paths.bound(pod())
    world.clock.stand_still(0.5)
    world.written(spec("c"))
    world.clock.stand_still(2)
    world.written(spec("c"))
    world.paths.reported(sent())
    world.paths.reported(sent("c"))
    world.paths.reported(sent("c"))
    assert world.times(BOUND_TO_WRITTEN) == pytest.approx((1, 0.5))
    assert world.times(BOUND_TO_IN_FORCE) == pytest.approx((1, 2.5))
    assert world.followed == 0


def test_the_steps_of_a_traced_pod_are_logged_with_its_uid(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    for sink in (None, bool):
        world.paths.sink = sink
        world.paths.bound(pod())
        world.written(spec("c"))
        world.paths.reported(sent("c"))
    texts = [(one.getMessage(), one.__dict__["pod_uid"]) for one in caplog.records]
    assert texts == [("placed a pod", "1"), ("the CPUs of a pod are in force", "1")]


def test_a_pod_is_in_force_once_all_its_containers_have_been(world: World) -> None:
    """A container that is started after another one has ended is never there together with it."""
    world.paths.bound(pod())
    world.written(spec("init", "c"))
    world.paths.reported(sent("init"))
    assert world.times(BOUND_TO_IN_FORCE)[0] == 0
    world.paths.reported(sent("c"))
    assert world.times(BOUND_TO_IN_FORCE)[0] == 1


def test_a_refused_pod_and_one_that_ends_have_no_time(world: World) -> None:
    refusal = Refusal(pod_uid="2", namespace="d", pod="p", reason="NotEnoughCPUs", message="m")
    for uid in "123":
        world.paths.bound(pod(uid))
    world.written(replace(spec("c"), refused=(refusal,)))
    world.paths.gone("1")
    world.paths.gone("3")
    world.paths.gone("unknown")
    world.paths.reported(sent("c"))
    assert world.followed == world.times(BOUND_TO_IN_FORCE)[0] == 0


@pytest.mark.parametrize(
    "one", [pod(cpus=0), pod(terminal=True), pod(deleting=True)], ids=["shared", "ended", "ends"]
)
def test_only_pods_that_may_get_cpus_are_followed(world: World, one: PodView) -> None:
    world.paths.bound(one)
    assert world.followed == 0


def test_the_number_of_pods_that_are_followed_is_limited(world: World) -> None:
    for number in range(MOST_PODS + 5):
        world.paths.bound(pod(str(number)))
        world.written(spec("c", uid=str(number)))
    assert world.followed == MOST_PODS


@pytest.mark.parametrize(
    "status",
    [None, "text", [], {"containers": "text"}, {"containers": [1, {"exclusive": "yes"}, {}]}],
    ids=repr,
)
def test_a_status_may_be_anything(world: World, status: Any) -> None:
    world.paths.bound(pod())
    world.written(spec("c"))
    world.paths.reported({"metadata": {"name": "n"}, "status": status})
    assert world.followed == 1
