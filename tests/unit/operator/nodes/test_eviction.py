"""Evictions: asked again right before each, slowly, and told when they are not possible."""

import asyncio
from itertools import pairwise
from typing import Any

import pytest

from numapin_client.errors import ConnectionFailedError, TooManyRequestsError
from numapin_client.resources import Key
from numapin_operator.nodes.eviction import PAUSE_SECONDS, RETRY_SECONDS, Evictor
from numapin_operator.nodes.eviction_history import FIRST_DELAY_SECONDS
from numapin_operator.nodes.refusal_events import RefusalEvents
from numapin_operator.observe.cache import ClusterState
from numapin_operator.observe.records import AssignmentView
from numapin_operator.observe.versioned_cache import VersionedCache
from support.fakes.cluster import FakeCluster
from support.fakes.manual_clock import ManualClock
from support.real.waiting import running
from support.values.operator import PLANNED, assignment_view, node_view, pod_view, policy_body

EVICT = {"onUnsatisfiable": "Evict"}
HOUR = 3600.0


def refusal(pod: str, namespace: str = "default", reason: str = "NotEnoughCPUs") -> dict[str, str]:
    return {
        "podUID": f"uid-{pod}",
        "namespace": namespace,
        "pod": pod,
        "reason": reason,
        "message": "wanted 4 CPUs, 2 free",
    }


def placed(pod: str) -> dict[str, Any]:
    at = {"namespace": "default", "pod": pod, "container": "main", "cpus": "2-3", "mems": "0"}
    return at | {"podUID": f"uid-{pod}", "exclusive": True}


def assignment(*refused: dict[str, str], containers: Any = ()) -> AssignmentView:
    return assignment_view(PLANNED | {"refused": list(refused), "containers": list(containers)})


class World:
    """A node whose pods are refused, and the evictor."""

    def __init__(self) -> None:
        self.cluster, self.clock = FakeCluster(), ManualClock()
        self.state = ClusterState(lambda _, urgent=False: None)
        self.leading = asyncio.Event()
        self.leading.set()
        self.events = RefusalEvents(self.cluster, self.clock)
        self.evictor = Evictor(self.cluster, self.state, self.events, self.leading, self.clock)
        self.state.put_node(node_view())
        self.put_policy(EVICT)

    def put_policy(self, spec: dict[str, Any], version: int = 10, **others: Any) -> None:
        self.state.put_policy(policy_body("policy", spec, version=version, **others))

    def refuse(self, *pods: str, namespace: str = "default", **others: Any) -> None:
        """Have pods that exist, and that the newest spec refuses together with earlier ones."""
        for name in pods:
            self.cluster.pods[namespace, name] = f"uid-{name}"
            view = pod_view(name, namespace=namespace, **others)
            self.state.put_pod(Key(name, namespace), view)
        self.plan(*(refusal(pod.name, pod.namespace) for pod in self.state.pods_on("node-1")))

    def plan(self, *refused: dict[str, str], containers: Any = ()) -> None:
        """Write a spec, and offer what it refuses, as the controller does."""
        self.state.assignments = VersionedCache()
        self.state.assignments.put(assignment(*refused, containers=containers))
        self.evictor.offer("node-1")

    def left(self) -> list[str]:
        return [name for _, name in self.cluster.pods]


@pytest.fixture
def world() -> World:
    return World()


async def test_pods_are_evicted_once(world: World) -> None:
    async with running(world.evictor.run()):
        world.refuse("a", "b")
        await world.clock.run_tasks()
        assert world.left() == ["b"]
        world.evictor.offer("node-1")
        await world.clock.advance(2 * PAUSE_SECONDS)
        assert not world.cluster.pods


async def test_pods_are_evicted_slowly(world: World) -> None:
    async with running(world.evictor.run()):
        world.refuse(*"abc")
        await world.clock.run_tasks()
        assert len(world.left()) == 2
        await world.clock.advance(PAUSE_SECONDS / 2)
        assert len(world.left()) == 2
        await world.clock.advance(PAUSE_SECONDS / 2)
        assert len(world.left()) == 1


async def test_another_pod_of_the_same_name_stays(world: World) -> None:
    world.refuse("a", "b")
    world.cluster.pods["default", "a"] = "uid-of-its-successor"
    async with running(world.evictor.run()):
        await world.clock.advance(2 * PAUSE_SECONDS)
    assert world.left() == ["a"]


def edited_to_share(world: World) -> None:
    world.put_policy({}, version=11, generation=2)


def edited_to_none(world: World) -> None:
    world.put_policy(EVICT | {"mode": "None"}, version=11, generation=2)


def deleted(world: World) -> None:
    world.state.drop_policy(policy_body(version=12))


def being_deleted(world: World) -> None:
    world.put_policy(EVICT, version=11, deleting=True)


def no_longer_selected(world: World) -> None:
    pods = {"podSelector": {"matchLabels": {"app": "other"}}}
    world.put_policy(EVICT | {"pods": pods}, version=11, generation=2)


def another_policy_governs(world: World) -> None:
    world.state.put_policy(policy_body("stronger", {"priority": 1}, version=11))


def pod_placed(world: World) -> None:
    world.plan(containers=[placed("b")])


def pod_ending(world: World) -> None:
    body = pod_view("b")
    world.state.drop_pod(Key("b", "default"), body.node)


def node_gone(world: World) -> None:
    world.state.drop_node("node-1")


CHANGES = (
    edited_to_share,
    edited_to_none,
    deleted,
    being_deleted,
    no_longer_selected,
    another_policy_governs,
    pod_placed,
    pod_ending,
    node_gone,
)


@pytest.mark.parametrize("change", CHANGES, ids=lambda one: one.__name__)
async def test_what_changed_while_a_pod_waited_is_respected(world: World, change: Any) -> None:
    async with running(world.evictor.run()):
        world.refuse("a", "b")
        await world.clock.run_tasks()
        assert world.left() == ["b"]
        change(world)
        await world.clock.advance(HOUR)
    assert world.left() == ["b"]


async def test_who_does_not_lead_evicts_nothing_and_asks_again_when_it_leads(world: World) -> None:
    world.leading.clear()
    async with running(world.evictor.run()):
        world.refuse("a", "b")
        await world.clock.advance(HOUR)
        assert world.left() == ["a", "b"]
    world.plan(refusal("b"), containers=[placed("a")])
    world.leading.set()
    async with running(world.evictor.run()):
        await world.clock.advance(HOUR)
    assert world.left() == ["a"]


async def test_pods_that_replace_evicted_ones_are_evicted_less_and_less_often(
    world: World,
) -> None:
    """A controller puts each new pod on the same node, where it is refused again."""
    evicted_at: list[float] = []
    world.cluster.before_evict = lambda: evicted_at.append(world.clock.monotonic())
    async with running(world.evictor.run()):
        for number in range(8):
            name = f"pod-{number}"
            world.state.drop_pod(Key(f"pod-{number - 1}", "default"), "node-1")
            world.refuse(name, owner=("ReplicaSet", "uid-of-the-set"))
            for _ in range(601):
                if world.left():
                    await world.clock.advance(1)
    waits = [after - before for before, after in pairwise(evicted_at)]
    assert waits == [10, 20, 40, 80, 160, 320, 600]


async def test_a_quiet_cause_is_forgotten(world: World) -> None:
    async with running(world.evictor.run()):
        for round_ in range(2):
            world.refuse(f"a-{round_}", owner=("ReplicaSet", "set"))
            await world.clock.run_tasks()
            assert world.left() == []
            world.state.drop_pod(Key(f"a-{round_}", "default"), "node-1")
            await world.clock.advance(HOUR)
            world.refuse("another", owner=("ReplicaSet", "another"))
            await world.clock.advance(FIRST_DELAY_SECONDS)
            world.state.drop_pod(Key("another", "default"), "node-1")


async def test_the_pods_of_one_controller_that_were_refused_together_go_together(
    world: World,
) -> None:
    async with running(world.evictor.run()):
        world.refuse(*"abc", owner=("ReplicaSet", "set"))
        await world.clock.advance(2 * PAUSE_SECONDS)
        assert world.left() == []


async def test_namespaces_take_turns(world: World) -> None:
    """Many refused pods of one tenant delay those of another by one pause."""
    world.refuse(*"abcdefgh", namespace="greedy")
    async with running(world.evictor.run()):
        await world.clock.run_tasks()
        world.refuse("z", namespace="modest")
        await world.clock.advance(PAUSE_SECONDS)
    assert "z" not in world.left()
    assert len(world.left()) == 7


@pytest.mark.parametrize(
    "others",
    [
        {"owner": ("DaemonSet", "uid-of-the-set")},
        {"owner": ("Node", "uid-node-1")},
        {"priority": 2_000_000_000},
        {"priority": 2_000_001_000},
    ],
    ids=str,
)
async def test_protected_pods_are_never_evicted(world: World, others: Any) -> None:
    async with running(world.evictor.run()):
        world.refuse("a", **others)
        await world.clock.advance(HOUR)
    assert world.left() == ["a"]


async def test_an_eviction_that_a_disruption_budget_refuses_is_told_once_and_tried_less_often(
    world: World,
) -> None:
    world.cluster.budget = 0
    tried_at: list[float] = []
    world.cluster.before_evict = lambda: tried_at.append(world.clock.monotonic())
    async with running(world.evictor.run()), running(world.events.run()):
        world.refuse("a")
        await world.clock.advance(HOUR)
        world.cluster.budget = 1
        await world.clock.advance(HOUR)
    assert not world.cluster.pods
    waits = [round(after - before) for before, after in pairwise(tried_at)]
    assert waits == [10, 20, 40, 80, 160, 320, 600, 600, 600, 600, 600]
    (event,) = world.cluster.events
    assert "it is not evicted yet, and is tried again later: Cannot evict pod" in event.note
    assert "The disruption budget web needs 1 healthy pods" in event.note


async def test_a_blocked_pod_holds_up_no_other(world: World) -> None:
    world.cluster.failures = [ConnectionFailedError("POST", "refused")]
    async with running(world.evictor.run()), running(world.events.run()):
        world.refuse("a", "b")
        await world.clock.advance(PAUSE_SECONDS)
        assert world.left() == ["a"]
        await world.clock.advance(RETRY_SECONDS)
        assert world.left() == []
    assert world.cluster.events == []


async def test_retry_after_is_obeyed(world: World) -> None:
    overloaded = TooManyRequestsError("POST", 429, {"message": "try again later"}, 45)
    world.cluster.failures = [overloaded]
    async with running(world.evictor.run()), running(world.events.run()):
        world.refuse("a")
        await world.clock.advance(44)
        assert world.left() == ["a"]
        await world.clock.advance(1)
        assert world.left() == []
    assert world.cluster.events == []


async def test_an_unexpected_failure_concerns_one_pod_alone(world: World) -> None:
    def fail() -> None:
        world.cluster.before_evict = lambda: None
        raise RuntimeError("a defect")

    world.cluster.before_evict = fail
    async with running(world.evictor.run()):
        world.refuse("a", "b")
        await world.clock.advance(60)
        assert world.left() == ["a"]
        await world.clock.advance(HOUR)
        assert world.left() == []
