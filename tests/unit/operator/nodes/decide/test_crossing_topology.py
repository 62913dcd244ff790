"""`Ready` says that an option of the policy meets cores or sockets that cross NUMA nodes."""

from dataclasses import replace

import pytest

from numapin_api.topology import Cpu, NumaNode
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


@pytest.mark.parametrize(
    ("options", "socket_of", "node_of", "reason", "said"),
    [
        pytest.param(
            {"fullPCPUsOnly": True},
            8,
            1,
            "CrossingTopology",
            "threads of cores 0-1, 2-3",
            id="cores",
        ),
        pytest.param({}, 8, 1, "InForce", "", id="no-option"),
        pytest.param({"fullPCPUsOnly": True}, 8, 4, "InForce", "", id="sound"),
        pytest.param(
            {"alignBySocket": True},
            4,
            2,
            "CrossingTopology",
            "parts of several sockets",
            id="sockets",
        ),
        pytest.param({"alignBySocket": True}, 4, 4, "InForce", "", id="sound-sockets"),
    ],
)
def test_groups_that_cross_are_named(
    options: dict[str, bool], socket_of: int, node_of: int, reason: str, said: str
) -> None:
    cpus = tuple(Cpu(n, n // 2 * 2, n // socket_of, -1, n // node_of % 2) for n in range(8))
    nodes = (NumaNode(0, 1 << 30), NumaNode(1, 1 << 30))
    topology = replace(flat_topology(), cpus=cpus, numa_nodes=nodes)
    policies = (policy_view("policy", {"reserved": {"cpus": "0-3"}, "options": options}),)
    reported = enforcer_status(1, topology=topology)
    spec = decide(picture(assignment_view(PLANNED, reported), policies=policies)).spec
    assert spec is not None
    answered = enforcer_status(2, topology=topology)
    written = assignment_view(spec.to_wire(), answered, generation=2)
    outcome = decide(picture(written, policies=policies)).outcome
    assert outcome is not None
    assert (outcome.phase, outcome.reason) == (Phase.IN_FORCE, reason)
    assert said in outcome.message
