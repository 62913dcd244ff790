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


def test_memory_that_is_bound_beside_shared_cpus() -> None:
    """The memory manager binds every container of a Guaranteed pod."""
    block = [{"numaAffinity": [1], "type": "memory", "size": 1}]
    entries = {"a": {"half": block}, "b": {"main": block}}
    memory = parse_memory_state(json.dumps({"policyName": "Static", "entries": entries}))
    for cpus in ({"policyName": "static", "entries": {"b": {"main": "4"}}}, {"policyName": "none"}):
        state = parse_cpu_state(json.dumps(cpus))
        found = [tuple(one.to_wire().values()) for one in pinned(state, memory)]
        given = "4" if "entries" in cpus else ""
        assert found == [("a", "half", "", "1"), ("b", "main", given, "1")]


@pytest.mark.parametrize("policy", ["none", "None", "BestEffort", "Static "])
def test_what_another_policy_has_left_in_a_state_is_not_in_force(policy: str) -> None:
    block = [{"numaAffinity": [1], "type": "memory", "size": 1}]
    cpu = {"policyName": policy, "defaultCpuSet": "0-3", "entries": {"a": {"x": "4"}}}
    memory = {"policyName": policy, "entries": {"a": {"x": block}}}
    state = parse_cpu_state(json.dumps(cpu))
    assert (state.policy, state.known) == (policy, CpuSet())
    assert pinned(state, parse_memory_state(json.dumps(memory))) == ()


def test_cpus_of_a_pod_as_a_whole_are_known_and_exclusive_to_no_container() -> None:
    """As kubelet 1.36 writes it beside `entries`, and 1.37 in `data` alone."""
    whole = {"entries": {"a": {"x": "4-5"}}, "podEntries": {"a": {"cpuSet": "4-7"}}}
    common = {"policyName": "static", "defaultCpuSet": "0-3"}
    older = {**common, **whole, "checksum": 1}
    newer = {**common, "checksum": 1, "data": json.dumps(common | whole), "dataChecksum": 2}
    for written in (older, newer):
        state = parse_cpu_state(json.dumps(written))
        assert state.exclusive == {("a", "x"): CpuSet((4, 5))}
        assert str(state.known) == "0-7"


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
        ('{"policyName": "static", "podEntries": [1]}', "podEntries is not an object"),
        ('{"policyName": "static", "podEntries": {"a": {"cpuSet": 1}}}', "a cpuSet: 1 is not"),
        ('{"policyName": "static", "data": "{"}', "it is not JSON"),
        ('{"policyName": "static", "data": "[]"}', "it is not a JSON object"),
        (
            '{"policyName": "static", "entries": {"a": {"x": "1", "x": "2"}}}',
            "'x' stands twice in one object",
        ),
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
