"""A node where some of the reserved CPUs are offline follows the policy with the others."""

from dataclasses import replace

from numapin_api.cpuset import CpuSet
from numapin_operator.nodes.decide import decide
from numapin_operator.policies.status import Phase
from support.values.operator import (
    PLANNED,
    assignment_view,
    enforcer_status,
    flat_topology,
    picture,
    policy_view,
)


def test_a_reserved_cpu_that_is_offline_is_told_and_the_others_stay_reserved() -> None:
    topology = flat_topology()
    without_0 = replace(topology, cpus=topology.cpus[1:], offline=CpuSet([0]))
    reported = enforcer_status(1, topology=without_0)
    policies = (policy_view("policy", {"reserved": {"cpus": "0-1"}}),)
    spec = decide(picture(assignment_view(PLANNED, reported), policies=policies)).spec
    assert spec is not None
    assert spec.to_wire()["pools"] == {"reserved": "1", "shared": "1-7"}
    answered = enforcer_status(2, topology=without_0)
    written = assignment_view(spec.to_wire(), answered, generation=2)
    outcome = decide(picture(written, policies=policies)).outcome
    assert outcome is not None
    assert (outcome.phase, outcome.reason) == (Phase.IN_FORCE, "ReservedCPUsOffline")
    assert "reserved.cpus names 0, which is offline" in outcome.message
