"""What is read of ResourceSlices from the API server, and when."""

from dataclasses import replace
from typing import Any

import pytest

from numapin_api.topology import Topology
from numapin_client.errors import ClientError, ForbiddenError, UnavailableError
from numapin_client.resources import Key
from numapin_operator.nodes.decide.decision import DEVICES_SECONDS
from numapin_operator.nodes.lookups.places import AGAIN_SECONDS, MOST_LISTS
from numapin_operator.observe.pods.parser import parse_stored_pod
from support.fakes.cluster import FakeCluster
from support.fakes.operator import Operator, held, operator_of_one_node
from support.values.operator import cpu_claiming_body, enforcer_status
from support.values.placement import machine

TWO: Topology = machine(16, numa_nodes=2)
DRIVER = "gpu.example.com"
NEAR, FAR = "8-9", "2-3"


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster()


def claim(*devices: str, driver: str = DRIVER) -> dict[str, Any]:
    results = [{"request": "r", "driver": driver, "pool": "p", "device": one} for one in devices]
    status = {"allocation": {"devices": {"results": results}}}
    return {"metadata": {"name": "c", "uid": "uid-c"}, "status": status}


def slice_of(*devices: str, driver: str = DRIVER, **spec: Any) -> dict[str, Any]:
    """Devices near NUMA node 1."""
    attributes = {"resource.kubernetes.io/numaNode": {"int": 1}}
    listed = [{"name": one, "attributes": attributes} for one in devices]
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    return {
        "spec": {"driver": driver, "nodeName": "node-1", "pool": pool, "devices": listed} | spec
    }


async def operator_of(cluster: FakeCluster, **policy: Any) -> Operator:
    """An operator of one node with two NUMA nodes, whose policy wants one for each container."""
    operator = await operator_of_one_node(cluster)
    spec = {"reserved": {"count": 2}, "topology": {"policy": "SingleNUMANode"}} | policy
    cluster.put_policy("policy", spec)
    observed = cluster.assignments["node-1"]["metadata"]["generation"]
    cluster.put_status("node-1", enforcer_status(observed, topology=TWO))
    operator.observe()
    await operator.work_until_idle()
    return operator


def put(operator: Operator, name: str, claim: str = "c", *, sandboxed: bool = True) -> None:
    body = cpu_claiming_body(name, claim)
    view = replace(parse_stored_pod(body), sandboxed=sandboxed)
    operator.state.put_pod(Key(name, "default"), view)


async def wait(operator: Operator, seconds: float) -> None:
    await operator.clock.advance(seconds)
    await operator.work_until_idle()


async def test_a_pod_is_placed_near_the_devices_of_its_claim(cluster: FakeCluster) -> None:
    operator = await operator_of(cluster)
    cluster.claims = {Key("c", "default"): claim("g0")}
    cluster.slices = [slice_of("g0"), slice_of("g0", nodeName="another")]
    put(operator, "a")
    await operator.work_until_idle()
    assert held(cluster) == {"a": NEAR}
    assert cluster.slices_read == [("node-1", {DRIVER})]
    operator.add_pod("b")
    await operator.work_until_idle()
    assert held(cluster) == {"a": NEAR, "b": FAR}
    assert len(cluster.slices_read) == 1, "a pod that has a place needs no slice"


async def test_devices_of_no_node_are_known_and_near_nothing(cluster: FakeCluster) -> None:
    operator = await operator_of(cluster)
    cluster.claims = {Key("c", "default"): claim("net")}
    cluster.slices = [slice_of("net", allNodes=True) | {}]
    del cluster.slices[0]["spec"]["nodeName"]
    del cluster.slices[0]["spec"]["devices"][0]["attributes"]
    put(operator, "a")
    await operator.work_until_idle()
    assert held(cluster) == {"a": FAR}


async def test_a_pod_waits_for_a_driver_that_is_started_again(cluster: FakeCluster) -> None:
    operator = await operator_of(cluster)
    cluster.claims = {Key("c", "default"): claim("g0")}
    put(operator, "a", sandboxed=False)
    operator.add_pod("b")
    await wait(operator, 600)
    assert held(cluster) == {"b": FAR}
    tried = len(cluster.slices_read)
    assert tried < 15, "less and less often"
    cluster.slices = [slice_of("g0")]
    put(operator, "a")
    await operator.work_until_idle()
    assert held(cluster) == {"b": FAR, "a": NEAR}
    assert len(cluster.slices_read) == tried + 1, "at once, when its containers may start"


async def test_it_is_placed_without_them_soon_after_its_containers_may_start_and_told(
    cluster: FakeCluster,
) -> None:
    operator = await operator_of(cluster)
    cluster.claims = {Key("c", "default"): claim("g0")}
    put(operator, "a")
    await operator.work_until_idle()
    assert held(cluster) == {}
    await wait(operator, DEVICES_SECONDS)
    assert held(cluster) == {"a": FAR}
    (told,) = cluster.notices
    assert told.note.endswith(
        f"chosen without its devices: within 2 s no ResourceSlice has had its devices of {DRIVER}"
    )
    reads = len(cluster.slices_read)
    await wait(operator, 600)
    assert len(cluster.slices_read) == reads


@pytest.mark.parametrize("appears", [AGAIN_SECONDS, 1.5 * AGAIN_SECONDS])
async def test_a_slice_that_comes_while_it_waits_is_found(
    cluster: FakeCluster, appears: float
) -> None:
    operator = await operator_of(cluster)
    cluster.claims = {Key("c", "default"): claim("g0")}
    put(operator, "a", sandboxed=False)
    await wait(operator, appears)
    assert held(cluster) == {}
    cluster.slices = [slice_of("g0")]
    await wait(operator, 10 * AGAIN_SECONDS)
    assert held(cluster) == {"a": NEAR}


FORBIDDEN = ForbiddenError("GET slices", 403, {"reason": "Forbidden"})
BROKEN = UnavailableError("GET slices", 503, {"reason": "ServiceUnavailable"})


@pytest.mark.parametrize(
    ("failure", "expected"),
    [pytest.param(FORBIDDEN, FAR, id="forbidden"), pytest.param(BROKEN, NEAR, id="broken")],
)
async def test_without_the_right_to_read_slices_nobody_waits(
    cluster: FakeCluster,
    failure: ClientError,
    expected: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    operator = await operator_of(cluster)
    cluster.claims, cluster.slices = {Key("c", "default"): claim("g0")}, [slice_of("g0")]
    real = cluster.read_places
    failures = [failure]

    async def read_places(node: str, devices: Any) -> Any:
        if failures:
            raise failures.pop()
        return await real(node, devices)

    cluster.read_places = read_places  # type: ignore[method-assign]
    put(operator, "a")
    await operator.work_until_idle()
    await wait(operator, AGAIN_SECONDS)
    assert held(cluster) == {"a": expected}
    assert [one.message for one in caplog.records if "claimed device" in one.message]


async def test_slices_are_read_only_where_devices_decide(cluster: FakeCluster) -> None:
    operator = await operator_of(cluster, topology={"policy": "None"})
    cluster.claims = {Key("c", "default"): claim("g0")}
    put(operator, "a")
    await operator.work_until_idle()
    assert held(cluster) == {"a": FAR}
    assert cluster.slices_read == []


async def test_many_drivers_are_read_in_several_turns(cluster: FakeCluster) -> None:
    operator = await operator_of(cluster)
    count = 2 * MOST_LISTS + 1
    drivers = [f"gpu{number}.example.com" for number in range(count)]
    cluster.slices = [slice_of("g", driver=one) for one in drivers]
    results = [
        one
        for driver in drivers
        for one in claim("g", driver=driver)["status"]["allocation"]["devices"]["results"]
    ]
    whole = claim()
    whole["status"]["allocation"]["devices"]["results"] = results
    cluster.claims = {Key("c", "default"): whole}
    put(operator, "a")
    turns = 0
    while len(cluster.slices_read) < count:
        turns += 1
        await operator.controller.reconcile("node-1")
        assert len(cluster.slices_read) <= turns * MOST_LISTS
    assert turns == 3
    await operator.work_until_idle()
    assert held(cluster) == {"a": NEAR}
