"""What a decision about a node depends on, as it is read from the cache."""

from dataclasses import replace

import pytest

from numapin_api.cpuset import MemSet
from numapin_api.schema.plain_assignment import (
    ContainerDevices,
    DeviceCount,
    DevicesStatus,
    UnnamedDevices,
)
from numapin_client.resources import Key
from numapin_operator.nodes.picture import picture_of
from numapin_operator.observe.cache import ClusterState
from numapin_operator.placement import PodView, with_named
from support.values.devices import NIC, container, pod_of
from support.values.operator import assignment_view, node_view

OTHER = ContainerDevices("other", "c0", NIC, 1, MemSet((0,)))
ROW = UnnamedDevices("default", "new", "c0", NIC, 2, MemSet((1,)))
NAMED = ContainerDevices("u1", "c0", NIC, 2, MemSet((1,)))


def pod(uid: str, name: str = "new") -> PodView:
    return replace(pod_of(name, container("c0", nic=2)), uid=uid, namespace="default")


def devices(*uids: str) -> DevicesStatus:
    """Of pods that have cgroups, and whose names the node does not know yet."""
    return DevicesStatus(None, (DeviceCount(NIC, 4),), (OTHER,), (ROW,), uids)


@pytest.mark.parametrize(
    ("uids", "pods", "expected"),
    [
        pytest.param(("u1",), (pod("u1"),), (OTHER, NAMED), id="one"),
        pytest.param(("u0", "u1"), (pod("u1"), pod("u0", "x")), (OTHER, NAMED), id="one-of-two"),
        pytest.param(("u0",), (pod("u1"),), (OTHER,), id="no-cgroup-when-asked"),
        pytest.param(("u1",), (pod("u1", "x"),), (OTHER,), id="another-name"),
        pytest.param(("u1", "u2"), (pod("u1"), pod("u2")), (OTHER,), id="two-of-one-name"),
        pytest.param((), (pod("u1"),), (OTHER,), id="all-named"),
    ],
)
def test_a_pod_has_what_is_listed_under_its_name(
    uids: tuple[str, ...], pods: tuple[PodView, ...], expected: tuple[ContainerDevices, ...]
) -> None:
    assert with_named(devices(*uids), pods).containers == expected


def test_a_picture_has_the_devices_of_pods_that_their_node_cannot_name() -> None:
    status = {"observedGeneration": 1, "devices": devices("u1").to_wire()}
    state, view = ClusterState(), assignment_view({}, status)
    state.put_node(node_view())
    state.put_assignment(view)
    state.put_pod(Key("new", "default"), replace(pod("u1"), node="node-1"))
    found = picture_of(state, "node-1").assignment
    assert found is not None
    assert found.status.devices is not None
    assert found.status.devices.containers == (OTHER, NAMED)


def test_a_picture_has_the_assignment_itself_while_all_pods_have_names() -> None:
    state, view = ClusterState(), assignment_view({})
    state.put_assignment(view)
    assert picture_of(state, "node-1").assignment is state.assignments.get("node-1")
