"""A cluster of nodes in many states on known machines, as kubectl shows it, to be looked at."""

import asyncio
import json
from functools import cache
from pathlib import Path
from typing import Any

from numapin_api.hardware.compact import compact_topology
from numapin_api.hardware.machine_file import parse_machine
from support.fakes.worlds.described_cluster import living_cluster
from support.values.operator import Body, pod_body

MACHINES = Path(__file__).parents[2] / "conformance" / "machines"
SPEC: Body = {"reserved": {"count": 2}, "topology": {"policy": "SingleNUMANode"}}
HOSTILE = "<img src=x onerror=alert(1)>"
"""What a tenant who writes into messages may try."""


def pictured(machine: str, node: str, *cpus: str, spec: Body | None = None) -> list[Body]:
    """The Node, its assignment and its pods, decided by the operator; and the policy.

    Args:
        machine: a file of the conformance machines.
        node: its name.
        cpus: what each pod asks for.
        spec: of the policy.
    """
    found: list[Body] = json.loads(_pictured(machine, node, cpus, json.dumps(spec or SPEC)))
    return found


@cache
def _pictured(machine: str, node: str, cpus: tuple[str, ...], spec: str) -> str:
    file = MACHINES / f"{machine}.json"
    topology = parse_machine(file.read_bytes(), file.name)
    pods = [
        pod_body(f"{node}-{number}", each, bound=f"2026-01-01T00:00:{number:02}Z")
        for number, each in enumerate(cpus)
    ]
    world = asyncio.run(living_cluster(*pods, spec=json.loads(spec), topology=topology))
    items = json.loads(world.dump())["items"]
    for one in items:
        if one["kind"] == "NodeAssignment":
            one["status"]["topology"] = compact_topology(topology)
            _report(one)
    kept = (one for one in items if one["metadata"]["name"] != "node-2")
    return json.dumps(list(kept)).replace('"node-1"', f'"{node}"').replace("uid-node-1", node)


def _report(assignment: Body) -> None:
    """Have the enforcer say that the kernel has what was decided."""
    fields = ("podUID", "container", "cpus", "mems", "exclusive")
    entries = assignment["spec"].get("containers", ())
    assignment["status"]["containers"] = [
        {name: one[name] for name in fields if name in one} for one in entries
    ]


def of_kind(items: list[Body], kind: str) -> Body:
    """The only object of a kind."""
    (found,) = (one for one in items if one["kind"] == kind)
    return found


def stalled(items: list[Body], reason: str, message: str) -> list[Body]:
    """The same, with an enforcer that carries nothing out."""
    status = of_kind(items, "NodeAssignment")["status"]
    condition = {"type": "Stalled", "status": "True", "reason": reason, "message": message}
    when = {"observedGeneration": 1, "lastTransitionTime": "2026-01-01T00:00:00Z"}
    status["conditions"] = [condition | when]
    return items


def fleet() -> list[Body]:
    """Nodes of which each is in another state."""
    ungoverned = pictured("laptop-1s1n-4c-smt2", "spare")
    drifting = pictured("laptop-1s1n-4c-smt2", "drifts", "2")
    of_kind(drifting, "NodeAssignment")["status"]["driftCount"] = 7
    groups = [
        pictured("laptop-1s1n-4c-smt2", "laptop", "2", "1"),
        pictured("xeon-2s2n-24c-smt2", "xeon", "8", "4", "16", "2"),
        pictured("epyc-2s-nps4-16l3-nosmt", "epyc", *["6"] * 8, "3", "20"),
        pictured("power7-256cpu-8n", "power", *["24"] * 7),
        pictured("laptop-1s1n-4c-smt2", "full", "4", "2", "2"),
        stalled(pictured("laptop-1s1n-4c-smt2", "stuck"), "KubeletCPUManager", HOSTILE),
        drifting,
        [of_kind(ungoverned, "Node")],
    ]
    return list({_key(one): one for group in groups for one in group}.values())


def _key(one: Body) -> tuple[str, ...]:
    metadata: dict[str, Any] = one["metadata"]
    return one["kind"], metadata.get("namespace", ""), metadata["name"]


def dump(items: list[Body]) -> str:
    """The objects as a file for `--cluster`."""
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
