"""What a pod is told that gets CPUs, or waits for them."""

from dataclasses import replace

from numapin_api.cpuset import CpuSet
from numapin_api.hardware.places import Near
from numapin_api.schema.plain_assignment import NodeAssignmentSpec, Refusal
from numapin_client.resources import Key
from numapin_operator.cluster import PodEvent
from numapin_operator.nodes.events.notices import (
    notice_of_waiting,
    notices_of_pinned,
    notices_of_resized,
    notices_of_written,
    with_places,
)
from numapin_operator.nodes.events.refusal_events import (
    MOST_NOTICES,
    NOTICES_PER_SECOND,
    WAITING_EVENTS,
    RefusalEvents,
)
from numapin_operator.placement import Allocatable, PodRequests, Queued, Unaccepted
from support.fakes.cluster import FakeCluster
from support.fakes.manual_clock import ManualClock
from support.fakes.operator import held, operator_of_one_node, report
from support.real.waiting import running
from support.values.operator import pod_view
from support.values.placement import granted_pod, machine, policy


def entry(pod: str, container: str, cpus: str, **more: object) -> dict[str, object]:
    named = {"podUID": f"uid-{pod}", "namespace": "default", "pod": pod, "container": container}
    return named | {"cpus": cpus, "exclusive": True} | more


def test_each_pod_that_gets_cpus_has_one_event() -> None:
    before = NodeAssignmentSpec.from_wire({"containers": [entry("old", "main", "1")]})
    block = {"numaNodes": [1], "resource": "memory", "bytes": "1"}
    bound = entry("two", "b", "8-9", mems="1", memory=[block])
    entries = [
        entry("old", "main", "1"),
        entry("two", "a", "2,8"),
        bound,
        entry("shares", "main", "5", exclusive=False),
    ]
    after = NodeAssignmentSpec.from_wire({"containers": entries})
    (told,) = notices_of_pinned(before, after, machine(16, numa_nodes=2))
    assert (told.pod, told.reason, told.is_warning) == ("two", "CPUsAssigned", False)
    first, second = told.note.split("; ")
    assert first == "container a: CPUs 2,8 of NUMA nodes 0-1"
    assert second.startswith("container b: CPUs 8-9 of NUMA nodes ")
    assert second.endswith(", memory of NUMA nodes 1")


def test_a_pod_that_says_where_is_told_what_that_means() -> None:
    after = NodeAssignmentSpec.from_wire({"containers": [entry("a", "main", "8-9")]})
    whole = machine(16, numa_nodes=2)
    for near, allowed, said in (
        (Near("numa/1", ""), True, "; it must be near numa/1 (NUMA node 1), by its annotation "),
        (Near("", "numa/1"), False, "; its annotation numapin.io/prefer-near has no effect: "),
        (Near("", "numa/9"), True, "; its annotation numapin.io/prefer-near: there is no numa/9; "),
        (None, True, ""),
    ):
        pods = {"uid-a": replace(pod_view("a"), near=near)}
        spec = policy(placement={"podRequests": allowed})
        written = notices_of_written(None, after, pods, whole)
        (told,) = with_places(written, pods, whole, spec)
        assert told.note.startswith(f"container main: CPUs 8-9 of NUMA nodes 1{said}")
        assert bool(said) == (";" in told.note)
        written = notices_of_written(None, after, pods, whole)
        assert len(list(with_places(written, {}, whole, spec))) == 1


def test_memory_of_a_numa_node_without_cpus_is_told() -> None:
    whole = machine(16, numa_nodes=2)
    bare = replace(whole, numa_nodes=(*whole.numa_nodes, replace(whole.numa_nodes[0], id=2)))
    block = {"numaNodes": [1, 2], "resource": "memory", "bytes": "1"}
    bound = entry("a", "main", "8-9", mems="1-2", memory=[block])
    (told,) = notices_of_pinned(None, NodeAssignmentSpec.from_wire({"containers": [bound]}), bare)
    assert told.note.endswith(", memory of NUMA nodes 1-2 (2 without CPUs)")


def test_each_container_that_was_resized_has_one_event() -> None:
    had = [entry("a", "c0", "2-3"), entry("b", "c0", "4"), entry("c", "c0", "5-6")]
    has = [entry("a", "c0", "2-3,8"), entry("b", "c0", "9"), entry("d", "c0", "7")]
    before, after = (NodeAssignmentSpec.from_wire({"containers": each}) for each in (had, has))
    asked = {"a": "3", "b": "1", "c": "500m", "d": "1"}
    pods = {f"uid-{name}": granted_pod(name, (cpus, "64Mi")) for name, cpus in asked.items()}
    told = notices_of_resized(before, after, pods, machine(16, numa_nodes=2))
    assert {(one.pod, one.reason, one.is_warning): one.note for one in told} == {
        ("a", "CPUsResized", False): "container c0: CPUs 2-3,8 of NUMA nodes 0-1; "
        "before the resize it had 2-3",
        ("c", "CPUsResized", False): "container c0: shared CPUs; before the resize it had 5-6",
    }
    ending = {uid: replace(one, deleting=True) for uid, one in pods.items()}
    assert list(notices_of_resized(before, after, ending, None)) == []


def test_pods_of_other_namespaces_are_not_named() -> None:
    ending = (("default", "a"), ("secret", "x"))
    queued = Queued(pod_view("b"), CpuSet.parse("2-3"), ending)
    assert notice_of_waiting(queued).note.endswith(": a and 1 more")
    assert "x" not in notice_of_waiting(replace(queued, ending=ending[1:])).note.split(": ")[1]
    many = tuple(("default", f"p{number}") for number in range(9))
    assert notice_of_waiting(replace(queued, ending=many)).note.endswith("p4 and 4 more")
    nothing = replace(queued, cpus=CpuSet())
    assert "waits for memory, which" in notice_of_waiting(nothing).note


def test_a_pod_that_waits_for_its_kubelet_is_told_the_numbers() -> None:
    held = Unaccepted(pod_view("b"), PodRequests(2000, 64 << 20), Allocatable(1500, 3 << 30, 1))
    told = notice_of_waiting(held)
    assert (told.pod, told.reason, told.is_warning) == ("b", "WaitingForKubelet", False)
    assert (
        "it requests 2000m CPU and 64 MiB of memory; 1500m, 3 GiB and room for 1 pod" in told.note
    )


async def test_a_pod_that_waits_for_an_ending_one_is_told_once_and_then_gets_its_cpus() -> None:
    cluster = FakeCluster()
    operator = await operator_of_one_node(cluster)
    async with running(operator.events.run()):
        operator.add_pod("old", "6")
        await operator.work_until_idle()
        report(cluster, "uid-old")
        operator.state.drop_pod(Key("old", "default"), "node-1")
        operator.add_pod("new", "4")
        for _ in range(3):
            operator.observe()
            operator.queue.add("node-1")
            await operator.work_until_idle()
        waits = [one for one in cluster.notices if one.reason == "WaitingForEndingPods"]
        assert [(one.pod, one.is_warning) for one in waits] == [("new", False)]
        assert "which ending pods still use: old" in waits[0].note
        report(cluster)
        operator.observe()
        await operator.work_until_idle()
        assert "new" in held(cluster)
    given = [one.pod for one in cluster.notices if one.reason == "CPUsAssigned"]
    assert given == ["old", "new"]
    assert cluster.events == []


async def test_notices_leave_room_for_refusals_and_are_bounded_in_the_long_run() -> None:
    cluster, clock = FakeCluster(), ManualClock()
    events = RefusalEvents(cluster, clock)
    flood = [PodEvent("default", str(n), str(n), "CPUsAssigned", "", False) for n in range(9999)]
    async with running(events.run()):
        events.inform(flood)
        for _ in range(MOST_NOTICES // 10):
            await clock.run_tasks()
        assert len(cluster.notices) == MOST_NOTICES
        await clock.advance(2)
        events.inform(flood)
        for _ in range(20):
            await clock.run_tasks()
    assert len(cluster.notices) == MOST_NOTICES + 2 * NOTICES_PER_SECOND


async def test_a_flood_of_one_namespace_keeps_no_event_from_another() -> None:
    """100 pods of a tenant are resized to and fro; every pod of others learns of its CPUs."""
    cluster, clock = FakeCluster(), ManualClock()
    events = RefusalEvents(cluster, clock)
    told: list[str] = []
    async with running(events.run()):
        for second in range(60):
            events.inform(notice("tenant", f"t{n}") for n in range(100))
            events.inform([notice("other", f"o{second}")])
            await clock.advance(1)
            told = [one.pod for one in cluster.notices if one.namespace == "other"]
            assert len(told) >= second, "not late either"
        await clock.advance(1)
    told = [one.pod for one in cluster.notices if one.namespace == "other"]
    assert told == [f"o{second}" for second in range(60)]
    assert len(cluster.notices) <= MOST_NOTICES + 62 * NOTICES_PER_SECOND


async def test_a_flood_of_refusals_keeps_no_refusal_and_no_notice_of_another_namespace() -> None:
    cluster, clock = FakeCluster(), ManualClock()
    events = RefusalEvents(cluster, clock)
    events.offer([a_refusal("tenant", n) for n in range(3 * WAITING_EVENTS)], "it waits")
    events.offer([a_refusal("other", 0)], "it waits")
    events.inform([notice("third", "a")])
    async with running(events.run()):
        await clock.run_tasks()
    assert [one.namespace for one in cluster.events[:2]] == ["tenant", "other"]
    assert [one.namespace for one in cluster.notices] == ["third"]


def notice(namespace: str, pod: str) -> PodEvent:
    return PodEvent(namespace, pod, f"uid-{pod}", "CPUsResized", "", is_warning=False)


def a_refusal(namespace: str, number: int) -> Refusal:
    pod = f"{namespace}{number}"
    return Refusal(pod_uid=pod, namespace=namespace, pod=pod, reason="NotEnoughCPUs", message="")
