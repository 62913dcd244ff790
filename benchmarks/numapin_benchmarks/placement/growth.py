"""How the CPU time of our planner grows with CPUs, NUMA nodes and running pods."""

import json
import random
import statistics
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from numapin_api.cpupolicy import CpuPolicySpec
from numapin_benchmarks.placement.whole_plans import whole_plans
from numapin_benchmarks.placement.workload import Json, Shape, scenario
from numapin_cli.inputs.machines import Machines
from numapin_cli.inputs.scenario import parse_scenario
from numapin_operator.placement import Node, PlacementError, PodView, plan_with, resolve

_ROUNDS = 5
_PODS = 60

ALIGNED: Json = {"topology": {"policy": "Restricted", "scope": "Container"}}
SPREAD: Json = {
    "options": {"distributeCPUsAcrossNUMA": True},
    "topology": {"policy": "BestEffort", "scope": "Container", "preferClosestNUMANodes": True},
    "memory": {"policy": "Static", "reserved": [{"numaNode": 0, "memory": "1Gi"}]},
}
BESIDE: Json = {
    "topology": {"policy": "BestEffort", "scope": "Container"},
    "memory": {"policy": "Preferred"},
}


def growth_tables() -> dict[str, list[Json]]:
    """Tables by title; each line has one size and the median microseconds at that size.

    They are of CPU time, so that other work on the machine counts less.
    """
    return {
        "one pod, by CPUs (4 NUMA nodes, Restricted)": [
            {"CPUs": shape.cpus, "us": _place(shape, ALIGNED)}
            for shape in (Shape(2, 4, cores, 2) for cores in (4, 16, 64, 128))
        ],
        "one pod, by NUMA nodes (16 CPUs each, distributed, BestEffort, nearest, memory)": [
            {"NUMA nodes": nodes, "us": _place(Shape(2, nodes, 8), SPREAD)}
            for nodes in (1, 2, 4, 8, 16, 34, 64)
        ],
        "a container over a quarter of the NUMA nodes (the same machines and policy)": [
            {"NUMA nodes": nodes, "us": _place_wide(Shape(2, nodes, 8), nodes * 4)}
            for nodes in (4, 8, 16, 34, 64)
        ],
        "a plan that refuses four containers, each of a quarter of the CPUs (Preferred)": [
            {"NUMA nodes": nodes, "us": _refuse(Shape(2, nodes, 8))} for nodes in (4, 8, 16, 30, 64)
        ],
        "a whole plan with one new pod, by pods that run already (448 CPUs, 8 NUMA nodes)": (
            whole_plans()
        ),
    }


def _place(shape: Shape, policy: Json) -> float:
    question = scenario("growth", shape, policy, _PODS) | {"machine": shape.document()}
    played = parse_scenario(json.dumps(question), Machines(Path()))
    resolved = resolve(played.topology, played.policy)
    took: list[float] = []
    for _ in range(_ROUNDS):
        node = Node(resolved)
        for step in played.steps:
            if step.add is None:
                node.release(step.remove)
            else:
                took.append(_timed(partial(_try, node, step.add)))
    return round(statistics.median(took), 1)


def _place_wide(shape: Shape, cpus: int) -> float:
    """A container that needs many NUMA nodes at once, which is the largest search."""
    pod = scenario("wide", shape, SPREAD, 1)["steps"][0]["add"]
    amounts = {"cpu": str(cpus), "memory": f"{cpus * 2}Gi"}
    pod["spec"]["containers"] = [
        {"name": "c0", "resources": {"requests": amounts, "limits": amounts}}
    ]
    question = {
        "name": "wide",
        "machine": shape.document(),
        "policy": {"reserved": {"count": 1}} | SPREAD,
        "steps": [{"add": pod}],
    }
    played = parse_scenario(json.dumps(question), Machines(Path()))
    resolved = resolve(played.topology, played.policy)
    asked = played.steps[0].add
    took = [_timed(lambda: _try(Node(resolved), asked)) for _ in range(_ROUNDS * 4)]
    return round(statistics.median(took), 1)


def _refuse(shape: Shape) -> float:
    """Smaller requests are tried, with the search for CPUs beside memory: the longest plan known.

    Half as many small pods of various sizes as there are NUMA nodes run already.
    """
    sizes = random.Random(5)
    small = [
        _pod(f"p{number}", sizes.choice((1, 2, 3, 5, 9, 12)), sizes.choice((1, 2, 3, 5, 8, 11)))
        for number in range(shape.numa_nodes // 2)
    ]
    steps = [*small, _pod("big", shape.numa_nodes * 4, 20, containers=4)]
    question = {
        "name": "refused",
        "machine": shape.document(),
        "policy": {},
        "steps": [{"add": pod} for pod in steps],
    }
    played = parse_scenario(json.dumps(question), Machines(Path()))
    pods = [step.add for step in played.steps if step.add is not None]
    policy = CpuPolicySpec.model_validate({"reserved": {"count": 1}} | BESIDE)
    resolved = resolve(played.topology, policy)
    before = plan_with(resolved, None, pods[:-1], frozenset()).spec
    took = [_timed(lambda: plan_with(resolved, before, pods, frozenset())) for _ in range(_ROUNDS)]
    return round(statistics.median(took), 1)


def _pod(name: str, cpus: int, gibibytes: float, containers: int = 1) -> Json:
    amounts = {"cpu": str(cpus), "memory": f"{int(gibibytes * 1024)}Mi"}
    resources = {"requests": amounts, "limits": amounts}
    listed = [{"name": f"c{number}", "resources": resources} for number in range(containers)]
    return {
        "metadata": {"name": name, "namespace": "default", "uid": name},
        "spec": {"containers": listed},
    }


def _try(node: Node, pod: PodView | None) -> None:
    if pod is not None:
        with suppress(PlacementError):
            node.place(pod)


def _timed(action: Callable[[], object]) -> float:
    begun = time.process_time_ns()
    action()
    return (time.process_time_ns() - begun) / 1000
