"""Pods as the API server gives them, to what the planner needs; and what is said of bad ones."""

from typing import Any

import pytest

from numapin_operator.observe.pods.origin import CRITICAL_PRIORITY
from numapin_operator.observe.pods.parser import parse_pod
from numapin_operator.placement import ContainerKind, MirrorClaim, Origin, PodFormatError
from numapin_operator.placement.requests import pod_cpus, pod_memory

MIB = 1 << 20


def pod(spec: dict[str, Any], **status: Any) -> dict[str, Any]:
    return {"metadata": {"name": "p", "uid": "u"}, "spec": spec, "status": status}


def container(name: str, cpu: str = "1", memory: str = "64Mi", **fields: Any) -> dict[str, Any]:
    amounts = {"cpu": cpu, "memory": memory}
    return {"name": name, "resources": {"requests": amounts, "limits": amounts}} | fields


def asking(limits: dict[str, str]) -> dict[str, Any]:
    return {"name": "a", "resources": {"limits": limits}}


def test_devices_are_the_extended_resources_of_the_limits() -> None:
    limits = {"x.y/z": "0", "a.b/c": "1k", "cpu": "1", "hugepages-2Mi": "2Mi"}
    native = {"ephemeral-storage": "1Gi", "requests.kubernetes.io/x": "1"}
    given = asking(limits | native)
    given["resources"]["requests"] = {"only.a/request": "1"}
    (view,) = parse_pod(pod({"containers": [given]})).containers
    assert view.devices == (("a.b/c", 1000), ("x.y/z", 0))


@pytest.mark.parametrize(
    ("containers", "qos"),
    [
        ([container("a")], "Guaranteed"),
        ([container("a"), {"name": "b"}], "Burstable"),
        ([{"name": "a"}], "BestEffort"),
        ([{"name": "a", "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}], "Guaranteed"),
        ([{"name": "a", "resources": {"limits": {"cpu": "1"}}}], "Burstable"),
        ([{"name": "a", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}], "Burstable"),
        ([{"name": "a", "resources": {"requests": {"cpu": "0"}}}], "BestEffort"),
    ],
)
def test_the_qos_class_is_worked_out_where_the_status_does_not_say(
    containers: list[dict[str, Any]], qos: str
) -> None:
    assert parse_pod(pod({"containers": containers})).qos == qos


def test_the_status_says_the_qos_class() -> None:
    given = pod({"containers": [container("a")]}, qosClass="Burstable")
    assert parse_pod(given).qos == "Burstable"


def test_pod_level_resources_decide_about_qos_and_budget() -> None:
    whole_pod = {"limits": {"cpu": "6", "memory": "1Gi"}}
    view = parse_pod(pod({"containers": [container("a", "2"), {"name": "b"}]} | {"resources": {}}))
    assert view.pod_level is None
    view = parse_pod(
        pod({"containers": [container("a", "2"), {"name": "b"}], "resources": whole_pod})
    )
    assert view.pod_level is not None
    assert view.pod_level.cpu_millis == 2000, "requests default to what the containers ask for"
    explicit = whole_pod | {"requests": {"cpu": "6", "memory": "1Gi"}}
    view = parse_pod(pod({"containers": [container("a", "2")], "resources": explicit}))
    assert (view.qos, pod_cpus(view)) == ("Guaranteed", 6)


def test_init_containers_count_at_their_peak_and_sidecars_throughout() -> None:
    view = parse_pod(
        pod(
            {
                "initContainers": [
                    container("early", "5", "10Mi"),
                    container("sidecar", "1", "20Mi", restartPolicy="Always"),
                    container("late", "4", "100Mi"),
                ],
                "containers": [container("a", "2", "30Mi"), container("b", "1", "30Mi")],
            }
        )
    )
    assert [each.kind for each in view.containers] == [
        ContainerKind.INIT,
        ContainerKind.SIDECAR,
        ContainerKind.INIT,
        ContainerKind.APP,
        ContainerKind.APP,
    ]
    assert pod_cpus(view) == 5
    assert pod_memory(view) == (("memory", 120 * MIB),)


def test_only_init_containers_that_succeeded_have_ended() -> None:
    statuses = [
        {"name": "done", "state": {"terminated": {"exitCode": 0}}},
        {"name": "failed", "state": {"terminated": {"exitCode": 1}}},
        {"name": "side", "state": {"terminated": {"exitCode": 0}}},
        {"name": "runs", "state": {"running": {}}},
    ]
    init = [container(name) for name in ("done", "failed", "runs")]
    init.append(container("side", restartPolicy="Always"))
    spec = {"initContainers": init, "containers": [container("a")]}
    view = parse_pod(pod(spec, initContainerStatuses=statuses))
    assert [each.name for each in view.containers if each.ended] == ["done"]


def test_what_the_operator_needs_of_a_live_pod() -> None:
    bound = "2026-01-02T03:04:05Z"
    given = pod(
        {"containers": [container("a")], "nodeName": "n1"},
        phase="Succeeded",
        conditions=[
            {"type": "Ready", "status": "False"},
            {
                "type": "PodScheduled",
                "status": "True",
                "lastTransitionTime": "2026-01-02T03:04:05Z",
            },
        ],
    )
    given["metadata"] |= {
        "namespace": "web",
        "labels": {"app": "x"},
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "deletionTimestamp": "2026-01-03T00:00:00Z",
        "annotations": {"kubernetes.io/config.mirror": "static-uid"},
        "ownerReferences": [{"kind": "Node", "name": "n1", "uid": "uid-n1"}],
    }
    view = parse_pod(given)
    assert (view.uid, view.namespace, view.node) == ("u", "web", "n1")
    assert view.mirror == MirrorClaim("static-uid", "n1", "uid-n1")
    assert view.order == (bound, "web", "p")
    assert (view.terminal, view.deleting, view.labels["app"]) == (True, True, "x")


def test_the_pods_of_one_controller_share_its_origin() -> None:
    """There are 150,000 pods, and far fewer controllers."""
    given = pod({"containers": [container("a")], "priority": 5})
    owner = {"kind": "ReplicaSet", "uid": "u", "controller": True}
    other = {"kind": "Foo", "uid": "v"}
    given["metadata"]["ownerReferences"] = [other, owner]
    origin = parse_pod(given).origin
    assert (origin.kind, origin.uid, origin.priority) == ("ReplicaSet", "u", 5)
    assert parse_pod(given).origin is origin
    bare = pod({"containers": [container("a")]})
    assert parse_pod(bare).origin is parse_pod(bare).origin == Origin()


@pytest.mark.parametrize("name", ["system-node-critical", "system-cluster-critical"])
def test_a_critical_class_is_a_critical_priority(name: str) -> None:
    given = pod({"containers": [container("a")], "priorityClassName": name})
    assert parse_pod(given).origin.priority == CRITICAL_PRIORITY


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({}, "pod p: spec.containers: is missing"),
        ({"containers": {}}, "spec.containers"),
        ({"containers": ["a"]}, r"spec.containers\[0\]: must be an object, not 'a'"),
        ({"containers": [{}]}, r"spec.containers\[0\].name: is missing"),
        (
            {"containers": [container("a", "two")]},
            r"pod p: spec.containers\[0\].resources.requests.cpu: 'two' is not a quantity",
        ),
        (
            {"containers": [container("a")], "resources": {"limits": {"memory": "1GB"}}},
            "spec.resources.limits.memory: '1GB' is not a quantity",
        ),
        (
            {"containers": [{"name": "a", "resources": {"requests": "1"}}]},
            r"spec.containers\[0\].resources.requests: must be an object, not '1'",
        ),
        (
            {"containers": [container("a")], "initContainers": [container("i", memory="1e")]},
            r"spec.initContainers\[0\].resources.requests.memory",
        ),
        (
            {"containers": [asking({"a.b/c": "two"})]},
            r"spec.containers\[0\].resources.limits: 'two' is not a quantity",
        ),
        (
            {"containers": [asking({"a.b/c": "-1"})]},
            r"spec.containers\[0\].resources.limits: '-1' is not a quantity",
        ),
    ],
)
def test_a_bad_pod_is_named_with_its_field(spec: dict[str, Any], message: str) -> None:
    with pytest.raises(PodFormatError, match=message):
        parse_pod(pod(spec))


def test_a_pod_without_a_uid_is_refused() -> None:
    with pytest.raises(PodFormatError, match=r"metadata\.uid: is missing"):
        parse_pod({"metadata": {"name": "p"}, "spec": {"containers": [container("a")]}})
