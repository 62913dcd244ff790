"""Whole plans and decisions with one new pod, by the pods that run already beside it.

Each plan goes on from the spec of the one before, as in the operator: a pod ends, then a new one
comes, and that is measured.
"""

import json
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from numapin_api.cpupolicy import CpuPolicySpec
from numapin_api.hardware.compact import compact_topology
from numapin_api.hardware.machine_file import parse_machine
from numapin_api.schema.plain_assignment import NodeAssignmentSpec
from numapin_api.topology import Topology
from numapin_benchmarks.placement.workload import Json, Shape
from numapin_cli.inputs.machines import Machines
from numapin_cli.inputs.scenario import parse_scenario
from numapin_operator.nodes.decide import NodePicture, decide
from numapin_operator.nodes.decide.decision import Moment
from numapin_operator.observe.assignments.view import AssignmentView
from numapin_operator.observe.records import NodeView, PolicyView
from numapin_operator.placement import PodView, forget_settled, plan_with, resolve

SHAPE = Shape(2, 8, 28, 4)
BESIDE = (0, 50, 125, 250)
ROUNDS = 40

CPUS: Json = {"reserved": {"count": 8}, "topology": {"policy": "Restricted", "scope": "Container"}}
MEMORY: Json = CPUS | {
    "memory": {"policy": "Static", "reserved": [{"numaNode": 0, "memory": "1Gi"}]}
}

Step = Callable[[NodeAssignmentSpec | None, Sequence[PodView]], NodeAssignmentSpec]
"""The next spec of the node with these pods."""


def whole_plans() -> list[Json]:
    """A line for each number of pods: the median microseconds of CPU time.

    `first us` is a plan when nothing is known of any pod, as the first one of a node.
    """
    topology = parse_machine(json.dumps(SHAPE.document()), "")
    return [
        {
            "pods": beside,
            "plan us": _measured(_planning(topology, CPUS), beside),
            "first us": _measured(_planning(topology, CPUS), beside, before=forget_settled),
            "with memory us": _measured(_planning(topology, MEMORY), beside),
            "decision us": _measured(_deciding(topology, CPUS), beside),
        }
        for beside in BESIDE
    ]


def _measured(step: Step, beside: int, before: Callable[[], object] = lambda: None) -> float:
    pods = _pods(beside + ROUNDS + 1)
    spec, took = step(None, pods[:beside]), list[float]()
    for first in range(ROUNDS):
        present = pods[first : first + beside]
        spec = step(spec, present)
        before()
        begun = time.process_time_ns()
        spec = step(spec, (*present, pods[first + beside]))
        took.append((time.process_time_ns() - begun) / 1000)
        assert len(spec.containers) == beside + 1, "a pod was refused"
    return round(statistics.median(took), 1)


def _pods(count: int) -> list[PodView]:
    """Pods of one CPU, in the order in which they are bound."""
    amounts = {"cpu": "1", "memory": "256Mi"}
    containers = [{"name": "c", "resources": {"requests": amounts, "limits": amounts}}]
    names = [f"p{number:04}" for number in range(count)]
    question = {
        "name": "plan",
        "machine": SHAPE.document(),
        "policy": {},
        "steps": [
            {
                "add": {
                    "metadata": {"name": name, "namespace": "default", "uid": name},
                    "spec": {"containers": containers},
                }
            }
            for name in names
        ],
    }
    played = parse_scenario(json.dumps(question), Machines(Path()))
    added = [step.add for step in played.steps if step.add is not None]
    return [replace(pod, node="node", bound=pod.uid) for pod in added]


def _planning(topology: Topology, policy: Json) -> Step:
    """`plan_with` alone."""
    resolved = resolve(topology, CpuPolicySpec.model_validate(policy))
    return lambda spec, pods: plan_with(resolved, spec, pods, frozenset()).spec


def _deciding(topology: Topology, policy: Json) -> Step:
    """All that the operator decides about a node."""
    amounts = {"cpu": "440", "memory": "500Gi", "pods": "500"}
    node = NodeView.decode(
        {
            "metadata": {"name": "node", "uid": "uid-node"},
            "status": {"capacity": amounts | {"cpu": "448"}, "allocatable": amounts},
        }
    )
    metadata: Json = {"name": "policy", "uid": "uid-policy", "resourceVersion": "1"}
    governing = PolicyView.decode({"metadata": metadata, "spec": policy})
    status = {"observedGeneration": 1, "running": [], "topology": compact_topology(topology)}
    metadata = metadata | {"name": "node", "generation": 1}
    reported = AssignmentView.decode({"metadata": metadata, "spec": {}, "status": status})

    def step(spec: NodeAssignmentSpec | None, pods: Sequence[PodView]) -> NodeAssignmentSpec:
        view = reported if spec is None else replace(reported, spec=spec)
        picture = NodePicture("node", node, (governing,), view, tuple(pods), now=Moment(1e9, 1.0))
        return decide(picture).spec or view.spec

    return step
