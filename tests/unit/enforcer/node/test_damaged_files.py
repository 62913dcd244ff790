"""No file of the kubelet or of a DRA driver makes a reader fail in a way that it does not name."""

from typing import Any

from hypothesis import given

from numapin_api.cpuset import CpuSet
from numapin_enforcer.node.cdi_spec import CdiSpecError, claimed_cpus
from numapin_enforcer.node.kubelet_state import (
    KubeletStateError,
    parse_cpu_state,
    parse_memory_state,
    pinned,
)
from support.values.files.damaged import contents

CPU: Any = {
    "policyName": "static",
    "defaultCpuSet": "0-3",
    "entries": {"8f2a9c": {"main": "4-5"}},
    "podEntries": {"77b0e1": {"cpuSet": "6-7"}},
    "checksum": 1,
}
BLOCK = {"numaAffinity": [0, 1], "type": "memory", "size": 4096}
MEMORY: Any = {"policyName": "Static", "entries": {"8f2a9c": {"main": [BLOCK]}}, "checksum": 1}
CDI: Any = {
    "cdiVersion": "0.8.0",
    "kind": "dra.k8s.io/cpu",
    "devices": [{"name": "a", "containerEdits": {"env": ["DRA_CPUSET_8f2a9c=2-3"]}}],
}
NAMES = (
    *("policyName", "defaultCpuSet", "entries", "podEntries", "cpuSet", "data", "numaAffinity"),
    *("devices", "containerEdits", "env", "static", "Static"),
)


@given(contents(CPU, NAMES), contents(MEMORY, NAMES))
def test_any_checkpoint_is_read_or_says_why(cpu: bytes, memory: bytes) -> None:
    try:
        state, bound = parse_cpu_state(cpu), parse_memory_state(memory)
    except KubeletStateError:
        return
    for one in pinned(state, bound):
        assert one.cpus or one.mems
        one.to_wire()


@given(contents(MEMORY, NAMES))
def test_any_checkpoint_of_memory_is_read_or_says_why(memory: bytes) -> None:
    try:
        bound = parse_memory_state(memory)
    except KubeletStateError:
        return
    for numa_nodes in bound.mems.values():
        assert all(one >= 0 for one in numa_nodes)
        assert str(numa_nodes)


@given(contents(CDI, NAMES))
def test_any_file_of_a_driver_is_read_or_says_why(content: bytes) -> None:
    try:
        claims = list(claimed_cpus(content))
    except CdiSpecError:
        return
    assert all(isinstance(one.cpus, CpuSet) for one in claims)
