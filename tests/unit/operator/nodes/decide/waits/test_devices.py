"""New pods wait a little until their node reports which devices they have."""

from dataclasses import replace
from typing import Any

import pytest

from numapin_api.cpuset import MemSet
from numapin_api.schema.plain_assignment import ContainerDevices, DeviceCount, DevicesStatus
from numapin_operator.nodes.decide import Decision, NodePicture, decide
from numapin_operator.nodes.decide.decision import DEVICES_SECONDS, NOTHING, Moment
from numapin_operator.nodes.decide.waits import lacking_devices, with_waits
from numapin_operator.nodes.events.notices import notices_of_written
from numapin_operator.observe.assignments.report import ReportView
from numapin_operator.placement import PodView
from support.values.devices import NIC, container, pod_of
from support.values.operator import (
    PLANNED,
    assignment_view,
    enforcer_status,
    picture,
    policy_view,
)
from support.values.placement import machine

HERE = (DeviceCount(NIC, 1, MemSet((0,))), DeviceCount(NIC, 1, MemSet((1,))))


def had_by(uid: str, count: int = 1) -> tuple[ContainerDevices, ...]:
    """The rows of a pod that has NICs near NUMA node 1."""
    return (ContainerDevices(uid, "c0", NIC, count, MemSet((1,))),)


class Seen:
    """One node with two NUMA nodes of 8 CPUs, seen again and again by one operator."""

    def __init__(self, alignment: str = "SingleNUMANode", **spec: Any) -> None:
        fields = {"reserved": {"cpus": "0"}, "topology": {"policy": alignment}} | spec
        self.policy = policy_view("policy", fields)
        self.view = assignment_view(
            PLANNED | {"pools": {"reserved": "0", "shared": "0-15"}},
            enforcer_status(1, topology=machine(16, numa_nodes=2)),
        )
        self.memory = NOTHING
        self.picture = picture(self.view)

    def look(
        self, at: float, rows: tuple[ContainerDevices, ...] = (), *pods: PodView, asked: bool = True
    ) -> Decision:
        """Decide at a time, with what the node reports of devices; `asked` if its kubelet is."""
        status = DevicesStatus(resources=HERE, containers=rows) if asked else None
        view = replace(self.view, status=replace(self.view.status, devices=status))
        seen: NodePicture = replace(
            picture(view, *pods, policies=(self.policy,)),
            memory=self.memory,
            now=Moment(1000 + at, at),
        )
        self.picture = with_waits(seen)
        decision = decide(self.picture)
        self.memory = decision.memory
        if decision.spec is not None:
            self.view = replace(self.view, spec=decision.spec)
        return decision

    @property
    def cpus(self) -> dict[str, str]:
        """The CPUs of each pod."""
        return {one.pod_uid: str(one.cpus) for one in self.view.spec.containers}

    @property
    def unassigned(self) -> tuple[str, ...]:
        return self.view.spec.unassigned


ASKING = pod_of("a", container("c0", "2", nic=1))
PLAIN = pod_of("b", container("c0", "2"))


def test_a_pod_is_placed_near_its_devices_as_soon_as_they_are_reported() -> None:
    node = Seen()
    waiting = node.look(10, (), ASKING)
    assert [one.pod.uid for one in waiting.waiting] == ["a"]
    assert waiting.again_at == 10 + DEVICES_SECONDS
    assert node.cpus == {}
    placed = node.look(10.5, had_by("a"), ASKING)
    assert node.cpus == {"a": "8-9"}
    assert (placed.waiting, placed.again_at) == ((), None)


def test_others_do_not_wait_with_it() -> None:
    node = Seen(startGate="Wait")
    node.look(10, (), ASKING, PLAIN)
    assert node.cpus == {"b": "2-3"}
    assert node.unassigned == (), "the start gate must wait for the other one"


def test_it_is_placed_without_them_after_two_seconds_and_told() -> None:
    node = Seen()
    node.look(10, (), ASKING)
    node.look(11.9, (), ASKING)
    assert node.cpus == {}
    before = node.view.spec
    node.look(12, (), ASKING)
    assert node.cpus == {"a": "2-3"}
    (told,) = notices_of_written(
        before, node.view.spec, {"a": ASKING}, node.view.topology, lacking_devices(node.picture)
    )
    assert told.note == (
        "container c0: CPUs 2-3 of NUMA nodes 0; chosen without its devices: within 2 s its node "
        f"has not reported which {NIC} it has"
    )
    late = node.look(13, had_by("a"), ASKING)
    assert node.cpus == {"a": "2-3"}, "it stays where it is"
    assert late.again_at is None


def test_a_wait_never_begins_again() -> None:
    """Rows that come and go, as of a node that lies, delay nothing further."""
    node = Seen()
    for at, rows in ((10, ()), (10.5, had_by("a", 2)), (11, ()), (11.5, had_by("a", 3))):
        assert [one.pod.uid for one in node.look(at, rows, ASKING).waiting] == ["a"]
    assert node.look(12, (), ASKING).waiting == ()
    assert node.cpus == {"a": "2-3"}


def test_another_operator_waits_at_most_as_long_again() -> None:
    node = Seen()
    node.look(10, (), ASKING)
    node.memory = NOTHING
    again = node.look(11.5, (), ASKING)
    assert again.again_at == 11.5 + DEVICES_SECONDS
    node.look(13.5, (), ASKING)
    assert node.cpus == {"a": "2-3"}


def test_the_two_seconds_begin_when_its_containers_may_start() -> None:
    """Its image may be large, and the kubelet has chosen the devices long before."""
    node, unready = Seen(), replace(ASKING, sandboxed=False)
    waiting = node.look(10, (), unready)
    assert [one.pod.uid for one in waiting.waiting] == ["a"]
    assert waiting.again_at is None
    node.look(500, (), unready)
    assert node.look(600, (), ASKING).again_at == 600 + DEVICES_SECONDS
    node.look(601, (), unready)
    node.look(602, (), unready)
    assert node.cpus == {"a": "2-3"}, "the count never begins again"


@pytest.mark.parametrize(
    ("alignment", "pod", "asked"),
    [
        pytest.param("None", ASKING, True, id="no-topology-policy"),
        pytest.param("Restricted", ASKING, False, id="kubelet-not-asked"),
        pytest.param("Restricted", PLAIN, True, id="no-devices"),
        pytest.param(
            "Restricted", pod_of("a", container("c0", "2", gpu=1)), True, id="other-devices"
        ),
        pytest.param(
            "Restricted", pod_of("a", container("c0", "2", nic=0)), True, id="none-of-them"
        ),
        pytest.param(
            "Restricted",
            pod_of("a", container("i0", "2", nic=1), container("c0", "2")),
            True,
            id="only-an-init-container",
        ),
    ],
)
def test_who_does_not_wait(alignment: str, pod: PodView, asked: bool) -> None:
    node = Seen(alignment)
    placed = node.look(10, (), pod, asked=asked)
    assert placed.waiting == ()
    assert node.cpus


def test_pods_that_get_nothing_do_not_wait() -> None:
    shares = pod_of("a", container("c0", "500m", nic=1))
    assert Seen().look(10, (), shares).waiting == ()
    node = Seen(pods={"podSelector": {"matchLabels": {"a": "b"}}})
    assert node.look(10, (), replace(ASKING, selected=False)).waiting == ()


def test_rows_of_a_lying_node_concern_only_its_own_pods() -> None:
    """Of pods that are not there, of NUMA nodes that do not exist, and a thousand of them."""
    rows = tuple(
        ContainerDevices(f"gone-{n}", "c0", NIC, 1 << 20, MemSet((n,))) for n in range(1000)
    )
    node = Seen()
    node.look(10, (*rows, *had_by("a")), ASKING)
    assert node.cpus == {"a": "8-9"}


def test_a_node_report_says_which_devices_there_are() -> None:
    row = {"resource": NIC, "numaNodes": "1", "count": 1}
    has = row | {"podUID": "a", "container": "c0", "ids": ["nic1"]}
    view = assignment_view(PLANNED)
    seen = {"uid": view.uid, "generation": view.generation}
    late = row | {"namespace": "d", "pod": "b", "container": "c0"}
    devices = {"message": "old", "resources": [row], "containers": [has]}
    devices |= {"unnamed": [late], "unnamedPods": ["b"]}
    body = {"observed": seen, "enforced": seen, "devices": devices}
    report = ReportView.decode({"metadata": {"name": view.name}, "status": body})
    found = view.reported(report, None).status.devices
    assert found is not None
    assert found.to_wire() == devices
    silent = ReportView.decode({"metadata": {"name": view.name}, "status": {"observed": seen}})
    assert view.reported(silent, None).status.devices is None
