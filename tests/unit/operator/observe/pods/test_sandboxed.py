"""Whether the containers of a pod with devices may start, by what its kubelet has reported."""

from typing import Any

import pytest

from numapin_operator.observe.pods.parser import parse_stored_pod

NOT_READY = {"type": "PodReadyToStartContainers", "status": "False"}
READY = NOT_READY | {"status": "True"}
BOUND = {"type": "PodScheduled", "status": "True"}
STARTED = {"startTime": "2026-01-01T00:00:00Z"}


def body(limits: dict[str, str], status: object) -> dict[str, Any]:
    containers = [{"name": "c", "resources": {"limits": limits}}]
    return {
        "metadata": {"name": "p", "uid": "u"},
        "spec": {"containers": containers},
        "status": status,
    }


@pytest.mark.parametrize(
    ("status", "wanted"),
    [
        ({"phase": "Pending", "conditions": [BOUND]}, False),
        ({"phase": "Pending", "conditions": [BOUND, NOT_READY]} | STARTED, False),
        ({"phase": "Pending", "conditions": [BOUND, READY]} | STARTED, True),
        ({"phase": "Running", "conditions": [NOT_READY]} | STARTED, True),
        ({"phase": "Pending", "conditions": [BOUND]} | STARTED, True),
        ({"conditions": "none"}, False),
        ({"conditions": [{"type": "PodReadyToStartContainers"}]} | STARTED, True),
    ],
    ids=["bound", "accepted", "sandbox", "running", "kubelet-of-1.28", "damaged", "no-status"],
)
def test_the_kubelet_says_when_containers_may_start(status: dict[str, Any], wanted: bool) -> None:
    assert parse_stored_pod(body({"a.b/c": "1"}, status)).sandboxed is wanted
    assert parse_stored_pod(body({"cpu": "1"}, status)).sandboxed, "nobody waits for it"
