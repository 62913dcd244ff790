"""The enforcer's spans of each pod."""

from dataclasses import replace
from typing import Any

import pytest

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.schema.plain import ContainerStatus, NodeAssignmentStatus
from numapin_daemon.telemetry.span import Span
from numapin_enforcer.pass_values import Pass
from numapin_enforcer.status.report import Report
from numapin_enforcer.telemetry.node_traces import NodeTraces
from numapin_enforcer.telemetry.passes import InForce
from support.fakes.manual_clock import ManualClock
from support.values.specs_and_trees import assigned, machine, spec

CONTAINER = assigned("exclusive", "4-5")
SPEC = spec(CONTAINER)


def report(*, exclusive: bool = True) -> Report:
    status = ContainerStatus("1", "exclusive", CpuSet((4, 5)), MemSet((0,)), exclusive)
    return Report(NodeAssignmentStatus(observed_generation=3, containers=(status,)), ())


class World:
    def __init__(self, known: Any = None) -> None:
        self.clock, self.spans = ManualClock(), list[Span]()
        self.traces = NodeTraces(self.spans.append, "n", known, self.clock)
        self.done = Pass(
            began_seconds=1001.0,
            ended_seconds=1001.5,
            spec=SPEC,
            topology=machine(),
            generation=3,
            received_seconds=1000.25,
        )

    def named(self) -> list[tuple[str, float]]:
        """The spans with how long they took."""
        return [(one.name, (one.end_ns - one.begin_ns) / 1e9) for one in self.spans]


@pytest.fixture
def world() -> World:
    return World()


def test_a_pod_is_accepted_enforced_and_reported_once(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    world.clock.stand_still(4)
    world.traces.passed(world.done, (InForce(CONTAINER, 1001.0, 1001.5),))
    world.traces.passed(world.done, ())
    world.traces.reported(report(exclusive=False))
    world.traces.reported(report())
    world.traces.reported(report())
    names, seconds = zip(*world.named(), strict=True)
    assert names == ("accept", "enforce", "report")
    assert seconds == pytest.approx((0.75, 0.5, 2.5), abs=1e-5)
    fields = [
        (one.__dict__["pod_uid"], one.__dict__["pod"], one.__dict__["generation"])
        for one in caplog.records
    ]
    assert fields == [("1", "d/p", 3)] * 3, "each step is logged"
    last = world.spans[-1]
    assert (last.subject, last.is_root) == ("1", False)
    assert last.attributes == {
        "k8s.pod.uid": "1",
        "k8s.pod.name": "p",
        "k8s.namespace.name": "d",
        "k8s.node.name": "n",
        "k8s.container.name": "exclusive",
        "numapin.cpus": "4-5",
        "numapin.generation": 3,
    }


def test_what_was_accepted_before_the_start_has_no_spans() -> None:
    world = World(SPEC)
    world.traces.passed(world.done, ())
    assert world.spans == []


def test_a_pod_that_is_gone_is_not_waited_for(world: World) -> None:
    world.traces.passed(world.done, (InForce(CONTAINER, 1001.0, 1001.5),))
    world.traces.passed(replace(world.done, spec=spec()), ())
    world.traces.reported(report())
    assert [one.name for one in world.spans] == ["accept", "enforce"]
    assert not world.traces._unreported


def test_a_container_without_exclusive_cpus_has_no_spans(world: World) -> None:
    shared = spec(assigned("guest", "", "0", exclusive=False))
    world.traces.passed(replace(world.done, spec=shared), ())
    assert world.spans == []
