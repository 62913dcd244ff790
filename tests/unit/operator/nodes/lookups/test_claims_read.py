"""What is read of ResourceClaims from the API server, and when."""

from dataclasses import replace
from typing import Any

import pytest

from numapin_client.errors import ForbiddenError
from numapin_client.resources import Key
from numapin_operator.nodes.lookups.claims import (
    AGAIN_SECONDS,
    LONGEST_AGAIN_SECONDS,
    MOST_READS,
    UNKNOWN_AT_ONCE,
)
from numapin_operator.observe.pods.parser import parse_pod
from support.fakes.cluster import FakeCluster
from support.fakes.operator import Operator, operator_of_one_node, spec
from support.values.operator import (
    cpu_claiming_body,
    enforcer_status,
)


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster()


def claim(uid: str, driver: str = "dra.cpu", allocated: bool = True) -> dict[str, Any]:
    results = [{"request": "cpus", "driver": driver}]
    status = {"allocation": {"devices": {"results": results}}} if allocated else {}
    return {"metadata": {"name": "c", "uid": uid}, "status": status}


def put(operator: Operator, name: str, claim: str = "c") -> None:
    operator.state.put_pod(Key(name, "default"), parse_pod(cpu_claiming_body(name, claim)))


async def wait(operator: Operator, seconds: float) -> None:
    await operator.clock.advance(seconds)
    await operator.work_until_idle()


def pinned(cluster: FakeCluster) -> dict[str, bool]:
    return {one["pod"]: one.get("claimed", False) for one in spec(cluster)["containers"]}


async def test_each_claim_is_read_once_and_only_those_of_the_driver_count(
    cluster: FakeCluster,
) -> None:
    operator = await operator_of_one_node(cluster)
    cluster.claims = {Key("c", "default"): claim("uid-c"), Key("g", "default"): claim("g", "gpu")}
    listed = [{"claimUID": "uid-c", "cpus": "6-7"}]
    cluster.put_status("node-1", enforcer_status(1) | {"claims": listed})
    operator.observe()
    put(operator, "a")
    put(operator, "g", "g")
    operator.add_pod("b", "1")
    await operator.work_until_idle()
    operator.add_pod("d", "1")
    await operator.work_until_idle()
    assert pinned(cluster) == {"a": True, "b": False, "g": False, "d": False}
    assert sorted(cluster.claims_read) == [Key("c", "default"), Key("g", "default")]


async def test_pods_of_a_kubernetes_without_claims_do_not_wait(cluster: FakeCluster) -> None:
    cluster.has_claims = False
    operator = await operator_of_one_node(cluster)
    put(operator, "a")
    await operator.work_until_idle()
    assert pinned(cluster) == {"a": False}


@pytest.mark.parametrize("cause", ["forbidden", "unallocated", "missing"])
async def test_only_the_pods_of_unknown_claims_wait_and_they_are_tried_again(
    cluster: FakeCluster, cause: str
) -> None:
    operator = await operator_of_one_node(cluster)
    key = Key("c", "default")
    cluster.claims = {key: claim("uid-c", "gpu", allocated=cause != "unallocated")}
    if cause == "missing":
        cluster.claims = {}
    if cause == "forbidden":
        cluster.failures = [ForbiddenError("GET", 403, {"reason": "Forbidden"})]
    put(operator, "a")
    operator.add_pod("b")
    await operator.work_until_idle()
    assert pinned(cluster) == {"b": False}
    cluster.claims = {key: claim("uid-c", "gpu")}
    await wait(operator, AGAIN_SECONDS)
    assert "a" in pinned(cluster)
    assert len(cluster.claims_read) <= 2


async def test_a_claim_that_went_with_its_pod_is_not_read(cluster: FakeCluster) -> None:
    operator = await operator_of_one_node(cluster)
    ended = replace(parse_pod(cpu_claiming_body("a")), terminal=True)
    operator.state.put_pod(Key("a", "default"), ended)
    await operator.work_until_idle()
    assert cluster.claims_read == []


async def test_many_claims_are_read_in_several_turns(cluster: FakeCluster) -> None:
    operator = await operator_of_one_node(cluster)
    count = 2 * MOST_READS + 1
    for number in range(count):
        cluster.claims[Key(f"c{number}", "default")] = claim(f"uid-{number}", "gpu")
        body = cpu_claiming_body(f"p{number}", f"c{number}", cpu="1")
        operator.state.put_pod(Key(f"p{number}", "default"), parse_pod(body))
    turns = 0
    while len(cluster.claims_read) < count:
        turns += 1
        await operator.controller.reconcile("node-1")
        assert len(cluster.claims_read) <= turns * MOST_READS
    assert (turns, len(cluster.claims_read)) == (3, count)
    await operator.work_until_idle()


async def test_the_claims_of_pods_that_are_gone_are_forgotten(cluster: FakeCluster) -> None:
    operator = await operator_of_one_node(cluster)
    cluster.claims = {Key("c", "default"): claim("uid-c", "gpu")}
    put(operator, "a")
    await operator.work_until_idle()
    operator.state.drop_pod(Key("a", "default"), "node-1")
    await operator.work_until_idle()
    again = parse_pod(cpu_claiming_body("a"))
    operator.state.put_pod(Key("a", "default"), replace(again, uid="another"))
    await operator.work_until_idle()
    assert len(cluster.claims_read) == 2, "a claim of the same name may be another one"


async def test_only_the_claims_of_pods_that_the_policy_would_give_cpus_are_read(
    cluster: FakeCluster,
) -> None:
    """Pods of others cost nothing, whatever claims they name."""
    operator = await operator_of_one_node(cluster)
    fraction = parse_pod(cpu_claiming_body("fraction", "f", cpu="100m"))
    unmatched = cpu_claiming_body("burstable", "b")
    del unmatched["spec"]["containers"][0]["resources"]["limits"]
    for view in (fraction, parse_pod(unmatched)):
        operator.state.put_pod(Key(view.name, "default"), view)
    await operator.work_until_idle()
    assert cluster.claims_read == []


async def test_claims_of_other_pods_are_read_while_the_node_reports_one_that_is_not_known(
    cluster: FakeCluster,
) -> None:
    """The driver serves them too, and their CPUs must not be given away."""
    operator = await operator_of_one_node(cluster)
    cluster.claims = {Key("f", "default"): claim("uid-f")}
    view = parse_pod(cpu_claiming_body("fraction", "f", cpu="100m"))
    operator.state.put_pod(Key("fraction", "default"), view)
    await operator.work_until_idle()
    listed = [{"claimUID": "uid-f", "cpus": "6-7"}]
    cluster.put_status("node-1", enforcer_status(1) | {"claims": listed})
    operator.observe()
    await operator.work_until_idle()
    assert pinned(cluster) == {"fraction": True}
    assert cluster.claims_read == [Key("f", "default")]


async def test_of_a_pod_with_many_missing_claims_one_is_read_and_less_and_less_often(
    cluster: FakeCluster,
) -> None:
    operator = await operator_of_one_node(cluster)
    view = parse_pod(cpu_claiming_body("a"))
    (container,) = view.containers
    refs = tuple(container.claims[0]._replace(claim=f"c{n}") for n in range(64))
    many = replace(view, containers=(replace(container, claims=refs),))
    operator.state.put_pod(Key("a", "default"), many)
    reads = []
    for _ in range(120):
        await wait(operator, AGAIN_SECONDS)
        reads.append(len(cluster.claims_read))
    assert reads[-1] <= 8
    cluster.claims = {Key(f"c{n}", "default"): claim(f"uid-{n}", "gpu") for n in range(64)}
    await wait(operator, LONGEST_AGAIN_SECONDS)
    assert pinned(cluster) == {"a": False}


async def test_pods_of_one_namespace_that_name_missing_claims_do_not_use_up_the_requests(
    cluster: FakeCluster, caplog: pytest.LogCaptureFixture
) -> None:
    """Those of another one are read at once; each pod is logged once, and not without end."""
    operator = await operator_of_one_node(cluster)
    for number in range(5 * UNKNOWN_AT_ONCE):
        body = cpu_claiming_body(f"p{number}", f"c{number}", cpu="1")
        body["metadata"]["namespace"] = "tenant"
        operator.state.put_pod(Key(f"p{number}", "tenant"), parse_pod(body))
    await operator.work_until_idle()
    assert len(cluster.claims_read) <= UNKNOWN_AT_ONCE + 1
    cluster.claims = {Key("c", "default"): claim("uid-c", "gpu")}
    put(operator, "a")
    await operator.work_until_idle()
    assert pinned(cluster) == {"a": False}
    before = len(cluster.claims_read)
    for _ in range(60):
        await wait(operator, 1)
    assert len(cluster.claims_read) - before <= 60
    said = [one for one in caplog.messages if one.startswith("cannot read a claim")]
    assert 0 < len(said) <= len(set(cluster.claims_read))
