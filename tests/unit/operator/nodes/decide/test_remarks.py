"""What Ready says of a policy in force where memory or virtual machines need a person to know."""

from dataclasses import replace
from typing import Any

import pytest

from numapin_api.topology import NumaNode, Topology
from numapin_operator.nodes.decide import decide
from numapin_operator.placement import Allocatable
from numapin_operator.policies.status import NodeOutcome, Phase
from support.values.operator import (
    PLANNED,
    assignment_view,
    enforcer_status,
    flat_topology,
    node_view,
    picture,
    policy_view,
)

STATIC = {"policy": "Static", "reserved": [{"numaNode": 0, "memory": "1Gi"}]}
ALL_OF_IT = {
    "policy": "Static",
    "reserved": [*STATIC["reserved"], {"numaNode": 1, "memory": "4Gi"}],
}
LABEL = {"cpumanager": "false"}
NEWER = {**LABEL, "kubevirt.io/cpumanager": "false"}
OLDER_ALONE = {**LABEL, "kubevirt.io/cpumanager": "true"}


def bare(size: int = 4 << 30, *, on_device: bool = False) -> Topology:
    """A machine with a second NUMA node that has memory and no CPUs."""
    whole = flat_topology()
    own = replace(whole.numa_nodes[0], distances=(10, 14))
    other = NumaNode(1, size, {}, (14, 10), on_device=on_device)
    return replace(whole, numa_nodes=(own, other))


def outcome(
    topology: Topology, memory: dict[str, Any] | None, labels: dict[str, str], kept_back: int = 1
) -> NodeOutcome:
    spec = {"reserved": {"count": 2}, **({"memory": memory} if memory else {})}
    found = decide(
        picture(
            assignment_view(PLANNED, enforcer_status(1, topology=topology)),
            policies=(policy_view("policy", spec),),
            node=node_view(labels=labels, kept_back={"memory": kept_back << 30}),
        )
    ).outcome
    assert found is not None
    assert found.phase is Phase.IN_FORCE
    return found


@pytest.mark.parametrize(
    ("topology", "memory", "labels", "reason"),
    [
        pytest.param(flat_topology(), STATIC, {}, "InForce", id="nothing to say"),
        pytest.param(bare(), None, {}, "InForce", id="no memory is bound"),
        pytest.param(bare(), STATIC, {}, "MemoryWithoutCPUs", id="CXL"),
        pytest.param(bare(), {"policy": "Preferred"}, {}, "InForce", id="kept off"),
        pytest.param(bare(), STATIC | {"nodesWithoutCPUs": "Any"}, {}, "InForce", id="allowed"),
        pytest.param(bare(), ALL_OF_IT, {}, "InForce", id="all of it is reserved"),
        pytest.param(bare(0), STATIC, {}, "InForce", id="no memory either"),
        pytest.param(bare(on_device=True), STATIC, {}, "InForce", id="on a GPU"),
        pytest.param(bare(on_device=True), ALL_OF_IT, {}, "InForce", id="on a GPU, and reserved"),
        pytest.param(flat_topology(), None, LABEL, "KubeVirtCPUManager", id="KubeVirt"),
        pytest.param(flat_topology(), None, NEWER, "KubeVirtCPUManager", id="KubeVirt 1.8"),
        pytest.param(flat_topology(), None, {"cpumanager": "true"}, "InForce", id="set by hand"),
        pytest.param(flat_topology(), None, OLDER_ALONE, "InForce", id="the one selected is true"),
    ],
)
def test_a_policy_in_force_says_what_is_to_be_known(
    topology: Topology, memory: dict[str, Any] | None, labels: dict[str, str], reason: str
) -> None:
    assert outcome(topology, memory, labels).reason == reason


def test_the_message_has_what_can_be_written_into_the_policy() -> None:
    assert "set memory.nodesWithoutCPUs to Never" in outcome(bare(), STATIC, {}).message


@pytest.mark.parametrize(
    ("reserved", "offered", "reason"),
    [
        pytest.param({"count": 2}, 7000, "CPUReservationDiffers", id="more than is kept back"),
        pytest.param({"count": 2}, 6000, "InForce", id="as many"),
        pytest.param({}, 6000, "InForce", id="the default"),
        pytest.param({"count": 2}, None, "InForce", id="not reported yet"),
    ],
)
def test_a_reservation_of_cpus_that_the_scheduler_does_not_see_is_named(
    reserved: dict[str, Any], offered: int | None, reason: str
) -> None:
    node = node_view(allocatable=offered or 8000)
    if offered is not None:
        node = replace(node, allocatable=Allocatable(offered, 8 << 30, 110))
    found = decide(
        picture(
            assignment_view(PLANNED, enforcer_status(1, topology=flat_topology())),
            policies=(policy_view("policy", {"reserved": reserved}),),
            node=node,
        )
    ).outcome
    assert found is not None
    assert (found.phase, found.reason) == (Phase.IN_FORCE, reason)


def test_of_several_remarks_none_hides_another() -> None:
    found = outcome(bare(), STATIC, LABEL, kept_back=2)
    assert found.reason == "MemoryReservationDiffers"
    assert found.message.startswith("memory.reserved adds up to 1Gi of memory")
    assert "; MemoryWithoutCPUs: NUMA node 1 with memory" in found.message
    assert "; KubeVirtCPUManager: KubeVirt sets the label" in found.message


@pytest.mark.parametrize(
    ("writer", "reason", "said"),
    [
        pytest.param(None, "InForce", "", id="nobody"),
        pytest.param("nfd", "TopologyOfAnotherWriter", "has another writer: nfd", id="one"),
        pytest.param("x" * 9000, "TopologyOfAnotherWriter", "xxx", id="one with a long name"),
    ],
)
def test_the_writer_of_the_object_that_is_not_published_is_named(
    writer: str | None, reason: str, said: str
) -> None:
    seen = picture(
        assignment_view(PLANNED, enforcer_status(1, topology=flat_topology())),
        policies=(policy_view("policy", {"reserved": {"count": 2}}),),
        node=node_view(kept_back={"memory": 1 << 30}),
    )
    found = decide(replace(seen, other_writer=writer)).outcome
    assert found is not None
    assert (found.phase, found.reason) == (Phase.IN_FORCE, reason)
    assert said in found.message
    assert len(found.message) < 300
