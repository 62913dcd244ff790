"""The pods that a scheduler by NUMA nodes calls exclusive, by its own rule."""

from typing import Any

import pytest

from numapin_operator.observe.pods.parser import parse_pod, unusable_pod
from numapin_operator.observe.pods.resources import is_counted

RUNNING = {"phase": "Running"}


def spec(*containers: dict[str, Any], init: dict[str, Any] | None = None) -> dict[str, Any]:
    made: dict[str, Any] = {
        "containers": [{"name": "c", "resources": {"requests": each}} for each in containers]
    }
    if init is not None:
        made["initContainers"] = [{"name": "i", "resources": {"requests": init}}]
    return made


@pytest.mark.parametrize(
    ("qos", "made", "expected"),
    [
        pytest.param("Guaranteed", spec({"cpu": "2"}), True, id="whole-cpus"),
        pytest.param("Guaranteed", spec({"cpu": "2000m"}), True, id="whole-cpus-in-thousandths"),
        pytest.param("Guaranteed", spec({"cpu": "1500m"}), False, id="part-of-a-cpu"),
        pytest.param("Guaranteed", spec({"cpu": "0"}), False, id="no-cpu"),
        pytest.param("Guaranteed", spec({"cpu": "500m", "memory": "1Gi"}), True, id="memory"),
        pytest.param("Guaranteed", spec({"hugepages-2Mi": "4Mi"}), True, id="huge-pages"),
        pytest.param("Guaranteed", spec({"ephemeral-storage": "1Gi"}), False, id="storage"),
        pytest.param("Guaranteed", spec({}, init={"memory": "1Gi"}), True, id="init-container"),
        pytest.param("Guaranteed", spec({}), False, id="pod-level-alone"),
        pytest.param("Burstable", spec({"cpu": "2", "memory": "1Gi"}), False, id="burstable"),
        pytest.param("BestEffort", spec({"example.com/nic": "1"}), True, id="device"),
        pytest.param("BestEffort", spec({"example.com/nic": "0"}), True, id="no-device"),
        pytest.param("Burstable", spec({"a.kubernetes.io/x": "1"}), False, id="native-prefix"),
        pytest.param("Guaranteed", spec({"cpu": "two"}), False, id="no-quantity"),
        pytest.param("Guaranteed", {"containers": [None, {"resources": 3}]}, False, id="malformed"),
        pytest.param("Guaranteed", {"containers": 3}, False, id="no-list"),
    ],
)
def test_what_is_exclusive(qos: str, made: dict[str, Any], expected: bool) -> None:
    assert is_counted(made, RUNNING, qos) is expected


@pytest.mark.parametrize("phase", ["Pending", "Succeeded", "Failed", "Unknown", None])
def test_only_pods_that_run_count(phase: str | None) -> None:
    made, status = spec({"cpu": "2"}), {"phase": phase} if phase else {}
    assert not is_counted(made, status, "Guaranteed")


def test_every_decoded_pod_says_so() -> None:
    resources = {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "2", "memory": "1Gi"}}
    body = {
        "metadata": {"name": "p", "uid": "u"},
        "spec": {"containers": [{"name": "c", "resources": resources}]},
        "status": RUNNING | {"qosClass": "Guaranteed"},
    }
    assert parse_pod(body).counted
    assert unusable_pod(body, "of no matter").counted
