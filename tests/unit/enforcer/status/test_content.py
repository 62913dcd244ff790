"""A status is written as the models would write it."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from numapin_api.conditions.reasons import Obstacle, Reason
from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.hardware.compact import compact_free_hugepages
from numapin_api.nodeassignment import NodeAssignmentStatus
from numapin_enforcer.cgroups.memory.unbound import UnboundMemory
from numapin_enforcer.node.cdi_spec import ClaimedCpus
from numapin_enforcer.node.kubelet_state import KubeletContainer
from numapin_enforcer.status.conditions import judge
from numapin_enforcer.status.content import (
    CgroupStatus,
    ContainerStatus,
    NodeStatus,
    PoolsInForce,
    RuntimeStatus,
)
from numapin_enforcer.status.status_builder import Report

CPUS = st.sets(st.integers(0, 300), max_size=4).map(CpuSet)
MEMS = st.sets(st.integers(0, 7), max_size=3).map(MemSet)
NAMES = st.text("ab", min_size=1, max_size=4)
COUNTS = st.integers(0, 1 << 40)
NOW = "2030-01-01T00:00:00Z"

STATUSES = st.builds(
    NodeStatus,
    observed_generation=COUNTS,
    topology=st.none() | st.just({"offline": "3"}).map(dict),
    free_hugepages=st.dictionaries(
        st.integers(0, 9), st.dictionaries(NAMES, COUNTS, max_size=2), max_size=2
    ).map(compact_free_hugepages),
    pools=st.none() | st.builds(PoolsInForce, CPUS, CPUS, CPUS),
    containers=st.lists(
        st.builds(ContainerStatus, NAMES, NAMES, CPUS, MEMS, st.booleans()), max_size=3
    ).map(tuple),
    kubelet_containers=st.lists(
        st.builds(KubeletContainer, NAMES, NAMES, CPUS, MEMS), max_size=3
    ).map(tuple),
    claims=st.lists(st.builds(ClaimedCpus, NAMES, CPUS.filter(bool)), max_size=3).map(tuple),
    unbound_memory=st.lists(
        st.builds(UnboundMemory, NAMES, st.dictionaries(st.integers(0, 1023), COUNTS, max_size=3)),
        max_size=3,
    ).map(tuple),
    running=st.lists(NAMES, max_size=3).map(tuple),
    refused=COUNTS,
    outdated=COUNTS,
    drift_count=COUNTS,
    drift_causes=st.dictionaries(NAMES, COUNTS, max_size=3),
    cgroup=st.none()
    | st.builds(CgroupStatus, st.sampled_from((1, 2)), st.sampled_from(("cgroupfs", "systemd"))),
    runtime=st.none() | st.builds(RuntimeStatus, NAMES, NAMES),
    boot_id=st.none() | NAMES,
)
VERDICTS = st.sampled_from(
    (judge(None, None, ""), judge(Obstacle(Reason.WATCH_INCOMPLETE, "x"), None, ""))
)


@given(STATUSES, VERDICTS)
def test_the_models_read_it_and_would_write_the_same(status: NodeStatus, verdicts: Any) -> None:
    wire = Report(status, verdicts).wire({}, NOW)
    read = NodeAssignmentStatus.model_validate_json(json.dumps(wire), strict=True)
    written = read.to_wire()
    if status.topology is not None:  # it has its own test
        written["topology"] = wire["topology"]
    assert written == wire


def test_no_field_of_the_model_is_forgotten() -> None:
    elsewhere = {"conditions", "last_pass_time"}
    assert NodeStatus.__slots__ == tuple(
        name for name in NodeAssignmentStatus.model_fields if name not in elsewhere
    )
