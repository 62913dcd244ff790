"""A node on which a container must move, and the enforcer's reports on it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from numapin_api.cpuset import CpuSet
from numapin_api.duration import epoch_seconds
from numapin_api.schema.plain_assignment import ContainerAssignment, Moving, NodeAssignmentSpec
from numapin_api.topology import Topology
from numapin_operator.nodes.decide import Decision, NodePicture, Write, decide
from numapin_operator.observe.assignments.view import AssignmentView
from numapin_operator.placement import PodView
from support.values.operator import (
    assignment_view,
    condition,
    enforcer_status,
    node_view,
    policy_view,
)
from support.values.placement import machine, pod

BEGIN = float(epoch_seconds("2030-01-01T00:00:00Z"))
POLICY = {
    "mode": "Dynamic",
    "reserved": {"cpus": "0"},
    "topology": {"policy": "SingleNUMANode"},
}


def container(name: str, cpus: str, **others: Any) -> dict[str, Any]:
    """The entry of a pod's only container."""
    entry = {"podUID": f"uid-{name}", "namespace": "default", "pod": name, "container": "c0"}
    return entry | {"cpus": cpus, "exclusive": True} | others


@dataclass
class MovingNode:
    """A node that is decided on step by step; the test plays its enforcer."""

    entries: list[dict[str, Any]]
    pods: list[PodView]
    policy: dict[str, Any] = field(default_factory=dict)
    topology: Topology = field(default_factory=lambda: machine(8, 1, 2))
    now: float = BEGIN
    generation: int = 1
    observed: int = 1
    edits: int = 0
    """How often the policy was edited."""
    reported: dict[str, tuple[str, str]] = field(default_factory=dict)
    """What the enforcer reads back: pod to CPUs and NUMA nodes."""
    stalled: str = ""
    told: Mapping[str, float] | None = None
    """Since when pods know what leaves them; None if they are not told."""
    spec: dict[str, Any] = field(default_factory=dict)
    decision: Decision = field(default_factory=lambda: Decision(Write.NOTHING))

    def __post_init__(self) -> None:
        shared = self.topology.online
        for entry in self.entries:
            shared -= CpuSet.parse(entry["cpus"])
        self.spec = {
            "policy": {"name": "policy", "generation": 1, "since": 1},
            "mode": "Dynamic",
            "pools": {"reserved": "0", "shared": str(shared)},
            "containers": self.entries,
        }
        self.report()

    def view(self) -> AssignmentView:
        status = enforcer_status(
            self.observed, topology=self.topology, running=[pod.uid for pod in self.pods]
        )
        if self.stalled:
            status["conditions"] = [condition("Stalled", reason=self.stalled)]
        status["containers"] = [
            {"podUID": f"uid-{name}", "container": "c0", "cpus": cpus, "mems": mems}
            for name, (cpus, mems) in self.reported.items()
        ]
        return assignment_view(self.spec, status, generation=self.generation)

    def picture(self) -> NodePicture:
        policy = policy_view("policy", POLICY | self.policy, generation=1 + self.edits)
        pods = tuple(replace(pod, node="node-1") for pod in self.pods)
        made = NodePicture("node-1", node_view(), (policy,), self.view(), pods, told=self.told)
        return made.at(self.now)

    def decide(self) -> NodeAssignmentSpec:
        """Decide once and write what is decided."""
        self.decision = decide(self.picture())
        if self.decision.write is Write.REPLACE:
            assert self.decision.spec is not None
            self.spec = self.decision.spec.to_wire()
            self.generation += 1
        return NodeAssignmentSpec.from_wire(self.spec)

    def report(self) -> None:
        """Have the enforcer put the spec in force, and report that."""
        self.observed = self.generation
        self.reported = {
            one["pod"]: (one["cpus"], one.get("mems", "")) for one in self.spec["containers"]
        }

    def edit(self, **policy: Any) -> None:
        """Edit the policy that governs the node."""
        self.policy |= policy
        self.edits += 1

    def wait(self, seconds: float) -> None:
        self.now += seconds

    def entry(self, name: str) -> ContainerAssignment:
        known = NodeAssignmentSpec.from_wire(self.spec).containers
        return next(one for one in known if one.pod == name)

    def moving(self, name: str) -> Moving:
        """The move of a pod's container, which moves."""
        moving = self.entry(name).moving
        assert moving is not None
        return moving


def fragmented_node(**policy: Any) -> MovingNode:
    """Two containers and 2 free CPUs on each of 2 NUMA nodes; a pod that needs 3 comes."""
    entries = [container("small", "1"), container("large", "4-5")]
    late = replace(pod("demand", "3"), bound="2030-01-01T00:00:00Z")
    return MovingNode(entries, [pod("small", "1"), pod("large", "2"), late], policy)
