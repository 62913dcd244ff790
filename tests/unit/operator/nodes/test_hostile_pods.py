"""What a tenant can write into a pod concerns that pod alone, and is reported to its owner."""

import json
from dataclasses import replace
from typing import Any

import pytest

from numapin_api.nodeassignment import CONTAINERS_BYTES, MAX_ENTRIES, MAX_REFUSED, SPEC_BYTES
from numapin_api.schema.plain_assignment import NodeAssignmentSpec
from numapin_operator.nodes.decide import decide
from numapin_operator.observe.informers import decode_pod
from numapin_operator.observe.pods.mirror_pods import with_static_uids
from numapin_operator.placement import PodView
from support.values.operator import (
    EMPTY,
    Body,
    assignment_view,
    enforcer_status,
    flat_topology,
    picture,
    pod_body,
    policy_view,
)

NODE_UID = "uid-node-1"


def planned(
    *pods: Body | PodView,
    policy: Body | None = None,
    before: Body | None = None,
    cpus: int = 8,
    running: tuple[str, ...] = (),
) -> NodeAssignmentSpec:
    """The spec that is written for these pods on `node-1`, as the API server would take it."""
    views = [pod if isinstance(pod, PodView) else decode_pod(pod) for pod in pods]
    status = enforcer_status(1, topology=flat_topology(cpus), running=running)
    assignment = assignment_view(before or EMPTY, status)
    governing = policy_view("policy", {"reserved": {"count": 2}} | (policy or {}))
    resolved = with_static_uids(views, NODE_UID)
    decision = decide(picture(assignment, *resolved, policies=(governing,)))
    spec = decision.spec or assignment.spec
    return NodeAssignmentSpec.from_wire(spec.to_wire())


def refusals(spec: NodeAssignmentSpec) -> dict[str, tuple[str, str]]:
    return {one.pod: (one.reason, one.message) for one in spec.refused}


def placed(spec: NodeAssignmentSpec) -> dict[str, str]:
    return {one.pod: one.pod_uid for one in spec.containers}


def mirror(name: str, uid: str = "static", node: str = "node-1", node_uid: str = NODE_UID) -> Body:
    """A mirror pod as the kubelet writes it."""
    body = pod_body(name, "1")
    body["metadata"]["annotations"] = {"kubernetes.io/config.mirror": uid}
    body["metadata"]["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "Node", "name": node, "uid": node_uid, "controller": True}
    ]
    return body


def with_resources(name: str, **amounts: str) -> Body:
    body = pod_body(name, "1")
    resources = body["spec"]["containers"][0]["resources"]
    for side in ("requests", "limits"):
        resources[side] = {"cpu": "1", "memory": "64Mi"} | amounts
    return body


def wide(name: str, containers: int, cpu: str = "10m") -> Body:
    """A Guaranteed pod with many containers."""
    body = pod_body(name)
    amounts = {"cpu": cpu, "memory": "1Mi"}
    first = {"name": "c", "resources": {"requests": amounts, "limits": amounts}}
    body["spec"]["containers"] = [first | {"name": f"c{index}"} for index in range(containers)]
    body["status"] = {"qosClass": "Guaranteed"}
    return body


def test_a_mirror_pod_of_the_node_counts_under_the_uid_of_its_static_pod() -> None:
    assert placed(planned(mirror("etcd", uid="3f2a9c"))) == {"etcd": "3f2a9c"}


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(mirror("a", uid="not a uid"), id="no-uid"),
        pytest.param(mirror("a", uid="u" * 65), id="long"),
        pytest.param(mirror("a", uid=""), id="empty"),
        pytest.param(mirror("a", uid="uid\n"), id="newline"),
        pytest.param(mirror("a", node_uid="uid-of-another"), id="wrong-node-uid"),
        pytest.param(mirror("a", node="node-2"), id="wrong-node"),
        pytest.param(mirror("a", uid="uid-victim"), id="uid-of-another-pod"),
        pytest.param(
            mirror("a") | {"metadata": mirror("a")["metadata"] | {"ownerReferences": []}},
            id="no-owner",
        ),
    ],
)
def test_a_false_mirror_pod_gets_nothing_and_hurts_nobody(pod: Body) -> None:
    spec = planned(pod, pod_body("victim"))
    assert placed(spec) == {"victim": "uid-victim"}
    reason, message = refusals(spec)["a"]
    assert reason == "InvalidPod"
    assert message.startswith("metadata.annotations[kubernetes.io/config.mirror]: ")


def test_two_mirror_pods_of_one_static_pod_count_once() -> None:
    spec = planned(mirror("older", uid="static"), mirror("thief", uid="static"))
    assert placed(spec) == {"older": "static"}
    assert refusals(spec)["thief"][0] == "InvalidPod"


def test_a_mirror_pod_that_never_goes_holds_nothing() -> None:
    """A finalizer keeps it; the kubelet does not run it."""
    before = planned(mirror("etcd", uid="static")).to_wire() | {"policy": EMPTY["policy"]}
    ending = mirror("etcd", uid="static")
    ending["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert placed(planned(ending, before=before)) == {}
    assert placed(planned(ending, before=before, running=("static",))) == {"etcd": "static"}


def test_an_invalid_pod_that_becomes_valid_is_tried_again() -> None:
    before = planned(mirror("etcd", node_uid="uid-before")).to_wire()
    assert placed(planned(mirror("etcd"), before=before)) == {"etcd": "static"}


STATIC: Body = {"memory": {"policy": "Static"}}


@pytest.mark.parametrize(
    "amounts",
    [
        {"hugepages-2M": "0"},
        {"hugepages-2Mi": "0"},
        {"hugepages-3": "0"},
        {"hugepages-": "0"},
        {"hugepages-1e999": "0"},
        {"hugepages-2M": "2M"},
        {"hugepages-0": "0"},
        {"hugepages-" + "9" * 60: "0"},
        {"hugepages-\ud800": "0"},
    ],
    ids=lambda amounts: ascii(next(iter(amounts))),
)
@pytest.mark.parametrize("policy", ["Static", "Preferred", "SingleNUMA"])
def test_huge_pages_that_no_machine_has_are_left_out(amounts: dict[str, str], policy: str) -> None:
    spec = planned(with_resources("a", **amounts), policy={"memory": {"policy": policy}})
    assert [block.resource for one in spec.containers for block in one.memory] == ["memory"]


def test_huge_pages_have_one_name() -> None:
    machine = flat_topology()
    node = replace(machine.numa_nodes[0], hugepages={"2Mi": 64})
    pod = decode_pod(with_resources("a", **{"hugepages-2048Ki": "4Mi", "hugepages-2Mi": "2Mi"}))
    status = enforcer_status(1, topology=replace(machine, numa_nodes=(node,)))
    policy = policy_view("policy", {"reserved": {"count": 2}} | STATIC)
    spec = decide(picture(assignment_view(EMPTY, status), pod, policies=(policy,))).spec
    assert spec is not None
    sizes = {block.resource: block.bytes for one in spec.containers for block in one.memory}
    assert sizes == {"hugepages-2Mi": 6 << 20, "memory": 64 << 20}


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param({"cpu": "two"}, id="quantity"),
        pytest.param({"memory": "9" * 5000}, id="digits"),
    ],
)
def test_a_guaranteed_pod_that_cannot_be_used_gets_an_event_with_the_reason(
    spoil: dict[str, str],
) -> None:
    body = with_resources("a", **spoil) | {"status": {"qosClass": "Guaranteed"}}
    spec = planned(body, pod_body("b"))
    assert placed(spec) == {"b": "uid-b"}
    reason, message = refusals(spec)["a"]
    assert (reason, message[:18]) == ("InvalidPod", "spec.containers[0]")


def test_a_pod_of_another_qos_class_that_cannot_be_used_is_no_refusal() -> None:
    assert refusals(planned(with_resources("a", cpu="two"))) == {}


def test_a_pod_with_too_many_containers_shares() -> None:
    assert len(planned(wide("a", 256), policy=STATIC).containers) == 256
    spec = planned(wide("a", 257), policy=STATIC)
    assert spec.containers == ()
    assert refusals(spec)["a"][1].startswith("spec.containers: 257 with spec.initContainers")


def test_a_kubelets_250_pods_of_5_containers_fit() -> None:
    spec = planned(*(wide(f"p{index:03}", 5) for index in range(250)), policy=STATIC)
    assert (len(spec.containers), spec.refused) == (1250, ())


def test_a_pod_that_the_assignment_has_no_room_for_is_refused() -> None:
    pods = [wide(f"p{index:03}", 200) for index in range(12)]
    spec = planned(*pods, pod_body("last", "1"), policy=STATIC)
    assert len(spec.containers) == 2001
    assert MAX_ENTRIES - 200 < 2001 <= MAX_ENTRIES
    assert placed(spec)["last"] == "uid-last"
    assert set(refusals(spec)) == {"p010", "p011"}
    reason, message = refusals(spec)["p010"]
    assert reason == "AssignmentFull"
    assert "has 2001 and takes 2048; run fewer containers on this node" in message
    again = planned(*pods, pod_body("last", "1"), policy=STATIC, before=spec.to_wire())
    assert again == spec, "refusals stand"


def test_an_assignment_never_outgrows_etcd() -> None:
    """The longest names: the bytes are used up before the number of entries."""
    pods = []
    for index in range(12):
        pod = wide(f"p{index:03}" + "x" * 249, 200)
        for container in pod["spec"]["containers"]:
            container["name"] = f"{container['name']:y<63}"
        pod["metadata"] |= {"namespace": "n" * 63, "uid": f"{index:u<64}"}
        pods.append(pod)
    spec = planned(*pods, policy=STATIC)
    size = len(json.dumps(spec.to_wire(), separators=(",", ":")))
    assert CONTAINERS_BYTES * 0.7 < size < SPEC_BYTES
    assert len(spec.refused) > 0


def test_refusals_are_cut_and_counted() -> None:
    pods = [pod_body(f"p{index:04}", "64") for index in range(MAX_REFUSED + 200)]
    spec = planned(*pods)
    assert (len(spec.refused), spec.refused_omitted) == (MAX_REFUSED, 200)
    assert planned(*pods, before=spec.to_wire()) == spec
    few = planned(*pods[:5], before=spec.to_wire())
    assert (len(few.refused), few.refused_omitted) == (5, None)


def test_a_pod_that_fits_is_placed_beside_many_refused_ones() -> None:
    pods = [pod_body(f"p{index:04}", "64") for index in range(MAX_REFUSED + 20)]
    assert placed(planned(*pods, pod_body("small", "1", bound="2026-02-01T00:00:00Z"))) == {
        "small": "uid-small"
    }


def test_long_refusals_are_cut_by_their_size() -> None:
    pods: list[Any] = []
    for index in range(900):
        body = pod_body(f"p{index:04}") | {"status": {"qosClass": "Guaranteed"}}
        body["spec"]["containers"][0]["name"] = ""
        pods.append(replace(decode_pod(body), problem="<é" * 5000))
    spec = planned(*pods)
    assert (spec.refused_omitted or 0) + len(spec.refused) == 900
    assert all(len(one.message) == 2048 for one in spec.refused)
    assert len(spec.refused) * 2048 * 4 < SPEC_BYTES
