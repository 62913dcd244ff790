"""What a pod's status says that the kubelet has granted."""

from typing import Any

import pytest

from numapin_operator.observe.pods.parser import parse_pod
from support.values.placement import resources


def patched_pod(status: dict[str, Any], **spec: Any) -> dict[str, Any]:
    """A pod that was patched from 2 CPUs and 64 MiB to 4 CPUs and 1 GiB."""
    containers = [{"name": "c", "resources": resources("4", "1Gi")}]
    return {
        "metadata": {"name": "a", "uid": "u", "generation": 2},
        "spec": {"containers": containers} | spec,
        "status": status,
    }


def allocated(**amounts: Any) -> dict[str, Any]:
    return {"containerStatuses": [{"name": "c", "allocatedResources": amounts}]}


def test_a_patched_pod_has_what_the_kubelet_has_granted_so_far() -> None:
    pod = parse_pod(patched_pod(allocated(cpu="2", memory="64Mi")))
    (container,) = pod.containers
    assert (container.cpu_millis, container.memory) == (2000, (("memory", 64 << 20),))
    assert container.granted
    assert container.matched
    assert pod.edited
    assert pod.qos == "Guaranteed"


@pytest.mark.parametrize(
    "status",
    [
        pytest.param({}, id="no-status"),
        pytest.param({"containerStatuses": [{"name": "c"}]}, id="not-reported"),
        pytest.param({"containerStatuses": "c"}, id="no-list"),
        pytest.param({"containerStatuses": [None, {"name": 1}]}, id="no-objects"),
        pytest.param(allocated(cpu="-2"), id="negative"),
        pytest.param(allocated(cpu="many"), id="no-quantity"),
        pytest.param(allocated(cpu="1e30"), id="absurd"),
        pytest.param(allocated(cpu={}), id="object"),
        pytest.param({"containerStatuses": [{"name": "c", "allocatedResources": []}]}, id="list"),
    ],
)
def test_without_a_usable_report_the_spec_counts_and_is_not_granted(status: dict[str, Any]) -> None:
    (container,) = parse_pod(patched_pod(status)).containers
    assert (container.cpu_millis, container.granted) == (4000, False)


def test_huge_pages_are_not_resized() -> None:
    body = patched_pod(allocated(cpu="2", memory="64Mi", **{"hugepages-2Mi": "0"}))
    body["spec"]["containers"][0]["resources"] = resources("4", "1Gi", **{"hugepages-2Mi": "8Mi"})
    (container,) = parse_pod(body).containers
    assert dict(container.memory) == {"hugepages-2Mi": 8 << 20, "memory": 64 << 20}


@pytest.mark.parametrize(
    ("status", "millis", "granted"),
    [
        pytest.param({"allocatedResources": {"cpu": "4", "memory": "1Gi"}}, 4000, True, id="yes"),
        pytest.param({}, 6000, False, id="no"),
    ],
)
def test_resources_of_the_pod_as_a_whole(
    status: dict[str, Any], millis: int, granted: bool
) -> None:
    level = parse_pod(patched_pod(status, resources=resources("6", "2Gi"))).pod_level
    assert level is not None
    assert (level.cpu_millis, level.granted) == (millis, granted)
