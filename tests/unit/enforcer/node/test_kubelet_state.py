"""The checkpoints of the kubelet's managers; those that are recorded are of kubelet 1.36."""

import json

import pytest

from numapin_api.cpuset import CpuSet
from numapin_enforcer.node.kubelet_state import (
    KubeletStateError,
    parse_cpu_state,
    parse_memory_state,
    pinned,
)

UID = "0bf94c5d-a57c-4a00-8b08-c8b3e1a63ec9"
RECORDED = (
    '{"policyName":"static","defaultCpuSet":"1","entries":{"0bf94c5d-a57c-4a00-8b08-c8b3e1a63ec9":'
    '{"main":"0"}},"checksum":2642575751}'
)
RECORDED_NONE = '{"policyName":"none","defaultCpuSet":"","checksum":1353318690}'


def test_a_recorded_state_of_the_cpu_manager() -> None:
    state = parse_cpu_state(RECORDED)
    assert (state.policy, state.shared) == ("static", CpuSet((1,)))
    assert state.exclusive == {(UID, "main"): CpuSet((0,))}


def test_a_recorded_state_without_a_static_policy() -> None:
    state = parse_cpu_state(RECORDED_NONE.encode())
    assert (state.policy, state.shared, state.exclusive) == ("none", CpuSet(), {})


def test_pinned_containers_are_sorted_and_have_the_numa_nodes_of_their_memory() -> None:
    entries = {"b": {"main": "4-5"}, "a": {"x": "2", "none": ""}}
    cpu = parse_cpu_state(json.dumps({"policyName": "static", "entries": entries}))
    blocks = [{"numaAffinity": [1], "type": "memory"}, {"numaAffinity": [0], "type": "hugepages"}]
    memory = parse_memory_state(
        json.dumps({"policyName": "Static", "entries": {"b": {"main": blocks, "log": []}}})
    )
    found = [tuple(one.to_wire().values()) for one in pinned(cpu, memory)]
    assert found == [("a", "x", "2", ""), ("b", "main", "4-5", "0-1")]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "it is not JSON"),
        ("{", "it is not JSON"),
        ("[1]", "it is not a JSON object"),
        ("[" * 100_000, "it is not JSON"),
        ("{}", "policyName is missing"),
        ('{"policyName": 7}', "policyName is missing"),
        ('{"data": "{}", "policyName": ""}', "policyName is missing"),
        ('{"policyName": "static", "defaultCpuSet": "x"}', "defaultCpuSet: "),
        ('{"policyName": "static", "defaultCpuSet": 3}', "defaultCpuSet: 3 is not a list"),
        ('{"policyName": "static", "entries": [1]}', "entries is not an object"),
        (
            '{"policyName":"static","defaultCpuSet":"0","entries":{"8f2a9c":"2-3"},"checksum":1}',
            "before Kubernetes 1.18",
        ),
        ('{"policyName": "static", "entries": {"a": 7}}', "entries: 'a' is not a pod"),
        ('{"policyName": "static", "entries": {"../x": {}}}', "entries: '../x' is not a pod"),
        ('{"policyName": "static", "entries": {"a": {"": "1"}}}', "is not a container's name"),
        ('{"policyName": "static", "entries": {"a": {"\\u001b[2J": "1"}}}', "a container's name"),
        ('{"policyName": "static", "entries": {"a": {"x": "3-1"}}}', "a x: "),
        ('{"policyName": "static", "entries": {"a": {"x": null}}}', "a x: None is not a list"),
        ('{"policyName": "static", "entries": {"a": {"x": "99999"}}}', "a x: "),
    ],
)
def test_a_state_that_cannot_be_used_says_why(text: str, problem: str) -> None:
    with pytest.raises(KubeletStateError) as refused:
        parse_cpu_state(text)
    assert problem in str(refused.value)


@pytest.mark.parametrize("blocks", [7, [7], [{}], [{"numaAffinity": 7}], [{"numaAffinity": ["x"]}]])
def test_memory_that_is_no_list_of_blocks(blocks: object) -> None:
    text = json.dumps({"policyName": "Static", "entries": {"a": {"x": blocks}}})
    with pytest.raises(KubeletStateError, match="a x: no list of memory blocks"):
        parse_memory_state(text)
