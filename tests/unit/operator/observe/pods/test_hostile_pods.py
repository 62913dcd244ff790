"""Any pod is decoded and planned, whatever stands in its fields."""

import copy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from numapin_api.schema.plain_assignment import NodeAssignmentSpec
from numapin_operator.nodes.decide import decide
from numapin_operator.observe.informers import decode_pod
from numapin_operator.observe.pods.mirror_pods import with_static_uids
from support.values.operator import (
    EMPTY,
    Body,
    assignment_view,
    enforcer_status,
    picture,
    pod_body,
    policy_view,
)

TEXTS = st.sampled_from(["0", "-1", "2", "1500m", "1e999", "1Ei", "9" * 5000, "\ud800", ""])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXTS, inner, max_size=2),
    max_leaves=4,
)
POLICIES = [
    policy_view("policy", {"reserved": {"count": 1}} | fields)
    for fields in (
        {},
        {"memory": {"policy": "Static"}, "topology": {"policy": "Restricted"}},
        {"memory": {"policy": "Preferred"}, "pods": {"qosClasses": ["Guaranteed", "Burstable"]}},
    )
]


def full_pod() -> Body:
    """A pod with every field that the operator reads."""
    body = pod_body("a", labels={"app": "x"})
    container = body["spec"]["containers"][0]
    for side in ("requests", "limits"):
        container["resources"][side] = {"cpu": "1", "memory": "1Mi", "hugepages-2Mi": "0"}
    body["metadata"] |= {
        "annotations": {"kubernetes.io/config.mirror": "static"},
        "ownerReferences": [
            {"kind": "Node", "name": "node-1", "uid": "uid-node-1", "controller": True}
        ],
    }
    body["spec"] |= {
        "initContainers": [copy.deepcopy(container) | {"name": "i", "restartPolicy": "Always"}],
        "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "2", "memory": "4Mi"}},
        "priority": 5,
        "priorityClassName": "high",
    }
    body["status"] = {
        "phase": "Pending",
        "qosClass": "Guaranteed",
        "conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": "t"}],
        "initContainerStatuses": [{"name": "i", "state": {"terminated": {"exitCode": 0}}}],
    }
    return body


def paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of each field of a document."""
    if not isinstance(value, dict | list):
        return [path]
    steps = value.items() if isinstance(value, dict) else enumerate(value)
    return [path, *(found for key, one in steps for found in paths(one, (*path, key)))]


IDENTITY = {("metadata",), ("metadata", "name"), ("metadata", "namespace"), ("metadata", "uid")}
FIELDS = [path for path in paths(full_pod()) if path and path not in IDENTITY]


@given(st.lists(st.tuples(st.sampled_from(FIELDS), VALUES), min_size=1, max_size=2))
@settings(max_examples=300)
def test_any_pod_is_decoded_and_planned(changes: list[tuple[tuple[Any, ...], Any]]) -> None:
    body: Any = full_pod()
    for path, value in changes:
        part = body
        try:
            for step in path[:-1]:
                part = part[step]
            part[path[-1]] = value
        except (TypeError, KeyError, IndexError):
            continue  # the first change took the place of the second
    pods = with_static_uids([decode_pod(body), decode_pod(pod_body("b", "1"))], "uid-node-1")
    assert not any(pod.problem.startswith("it cannot be parsed") for pod in pods)
    for policy in POLICIES:
        view = assignment_view(EMPTY, enforcer_status(1))
        spec = decide(picture(view, *pods, policies=(policy,))).spec
        assert spec is not None
        assert NodeAssignmentSpec.from_wire(spec.to_wire()) == spec
        assert "b" in {one.pod for one in spec.containers}
