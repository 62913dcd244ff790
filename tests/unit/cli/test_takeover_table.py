"""`numapin migrate --check` on a table of what a kubelet's states say.

8 CPUs, 0-3 on NUMA node 0 and 4-7 on NUMA node 1. The policy reserves CPU 0 and binds memory. Pod
`a` asks for 2 CPUs, pod `b` for half a CPU.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from numapin_cli.main import main
from support.values.operator import pod_body

MACHINE = {
    "cpus": [[cpu, cpu // 2 * 2, cpu // 4, -1, cpu // 4] for cpu in range(8)],
    "numaNodes": [{"id": numa_node, "memoryBytes": 8 << 30} for numa_node in (0, 1)],
}
POLICY = {
    "apiVersion": "numapin.io/v1beta1",
    "kind": "CpuPolicy",
    "metadata": {"name": "web"},
    "spec": {
        "reserved": {"cpus": "0"},
        "topology": {"policy": "Restricted"},
        "memory": {"policy": "Static"},
    },
}
NONE = {"policyName": "none", "defaultCpuSet": ""}
NO_MEMORY = {"policyName": "None", "machineState": {}}
A, B = pod_body("a"), pod_body("b", "500m")


def static(shared: str, **more: Any) -> dict[str, Any]:
    return {"policyName": "static", "defaultCpuSet": shared, "checksum": 1} | more


def memory(**numa_nodes: list[int]) -> dict[str, Any]:
    """The memory manager's state, with the NUMA nodes of each pod's container."""
    entries = {
        f"uid-{name}": {"main": [{"numaAffinity": at, "type": "memory", "size": 64 << 20}]}
        for name, at in numa_nodes.items()
    }
    return {"policyName": "Static", "machineState": {}, "entries": entries, "checksum": 1}


def a_has(cpus: str) -> dict[str, Any]:
    return {"entries": {"uid-a": {"main": cpus}}}


def node(kept_back: str) -> dict[str, Any]:
    """The Node, which keeps back so many thousandths of a CPU."""
    amount = {"memory": "16Gi", "pods": "110"}
    left = f"{8000 - int(kept_back)}m"
    status = {"capacity": amount | {"cpu": "8"}, "allocatable": amount | {"cpu": left}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1", "uid": "n"}} | {
        "status": status
    }


Check = Callable[[tuple[Any, Any], tuple[Any, ...]], tuple[int, str]]


@pytest.fixture
def asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Check:
    """Runs --check with the two states and these objects; returns its status and what it says."""

    def run(states: tuple[Any, Any], objects: tuple[Any, ...]) -> tuple[int, str]:
        for name, content in zip(
            ("cpu_manager_state", "memory_manager_state"), states, strict=True
        ):
            if content is not None:
                text = content if isinstance(content, str) else json.dumps(content)
                (tmp_path / name).write_text(text)
        objects_file, machine = tmp_path / "objects.json", tmp_path / "machine.json"
        objects_file.write_text(json.dumps({"kind": "List", "items": [POLICY, *objects]}))
        machine.write_text(json.dumps(MACHINE))
        files = ["-f", str(objects_file), "--machine", str(machine)]
        status = main(["migrate", "--check", *files, "--kubelet-root-dir", str(tmp_path)])
        shown = capsys.readouterr()
        return status, shown.out + shown.err

    return run


START = "the kubelet does not start with this state"
CASES: list[Any] = [
    pytest.param(
        (static("0-3,6-7", **a_has("4-5")), memory(a=[1], b=[1])),
        (A, B),
        0,
        [
            "has given CPUs to 1 container, and has bound the memory of 1 without CPUs of",
            "  default/a main  4-5  keeps them",
            "  default/b main       memory on NUMA node 1, keeps it",
            "shared CPUs: 0-3,6-7, as before",
        ],
        id="memory-beside-shared-cpus",
    ),
    pytest.param(
        (NONE, memory(a=[1], b=[1])),
        (A, B),
        0,
        [
            "  default/a main  memory on NUMA node 1, keeps it; gets CPUs 4-5",
            "  default/b main  memory on NUMA node 1, keeps it",
            "shared CPUs: 0-7, then 0-3,6-7",
        ],
        id="cpu-manager-none",
    ),
    pytest.param(
        (NONE, memory(a=[1])),
        (pod_body("a", "5"), node("1000")),
        0,
        ["memory on NUMA node 1, keeps it", "; waits for CPUs: TopologyAffinityError"],
        id="cpu-manager-none-and-too-few-cpus-there",
    ),
    pytest.param((NONE, NO_MEMORY), (A,), 2, ["there is nothing to take over"], id="none-pins"),
    pytest.param(
        (NONE, memory(a=[1]) | {"policyName": "BestEffort"}),
        (A,),
        2,
        ["that of the memory manager is BestEffort"],
        id="best-effort",
    ),
    pytest.param(
        (static("0-7"), memory(b=[7])),
        (B,),
        1,
        [
            "! default/b main  memory on NUMA node 7, its memory would be moved to NUMA node 0",
            "7 is",
        ],
        id="numa-node-that-is-not-there",
    ),
    pytest.param(
        (static("0-7"), memory(gone=[1])),
        (B,),
        0,
        ["memory on NUMA node 1; no pod with this UID", "forgets it with the next pod"],
        id="pod-has-gone",
    ),
    pytest.param(
        (static("0-7"), None), (B,), 0, ["CPUs to 0 containers"], id="no-memory-manager-state"
    ),
    pytest.param(
        (static(""), NO_MEMORY), (B,), 0, ["shared CPUs: 0-7, as before"], id="empty-default-set"
    ),
    pytest.param(
        (static("", **a_has("4-5")), NO_MEMORY),
        (A,),
        0,
        [f"defaultCpuSet is empty, and containers have CPUs: {START}"],
        id="empty-default-set-beside-containers",
    ),
    pytest.param(
        (static("0-7", **a_has("4-5")), NO_MEMORY),
        (A,),
        0,
        [f"CPUs 4-5 are in defaultCpuSet and given to containers: {START}"],
        id="cpus-twice",
    ),
    pytest.param(
        (static("0-3,6-9", **a_has("4-5")), NO_MEMORY),
        (A,),
        0,
        [f"CPUs 8-9 of the state are not online: {START}"],
        id="cpus-that-went-offline",
    ),
    pytest.param(
        (static("0-1"), NO_MEMORY),
        (B, node("500")),
        0,
        ["the state does not know CPUs 2-7: the Node keeps back 500m of CPU, so these came online"],
        id="cpus-that-came-online",
    ),
    pytest.param(
        (static("0-3,6-7", **a_has("4-5")), NO_MEMORY),
        (A, node("1000")),
        0,
        ["shared CPUs: 0-3,6-7, as before"],
        id="nothing-strict",
    ),
    pytest.param(
        (static("1-7"), NO_MEMORY),
        (B, node("1000")),
        0,
        ["keeps CPUs 0 from all pods (strict-cpu-reservation), and the policy does not: reserved:"],
        id="strictly-reserved",
    ),
    pytest.param(
        (static("0-6"), NO_MEMORY),
        (B, node("500")),
        0,
        ["does not know CPUs 7: they came online", "; or the kubelet keeps CPUs 7 from all pods"],
        id="as-many-as-are-kept-back-and-others-than-the-policy-reserves",
    ),
    pytest.param(
        (static("0-3", podEntries={"uid-p": {"cpuSet": "4-7"}}), NO_MEMORY),
        (B, node("500")),
        0,
        ["shared CPUs: 0-3, then 0-7"],
        id="pod-with-cpus-as-a-whole",
    ),
    pytest.param(
        (static("0-7", data=json.dumps(static("0-3,6-7", **a_has("4-5")))), NO_MEMORY),
        (A,),
        0,
        ["default/a main  4-5  keeps them"],
        id="version-4",
    ),
    pytest.param(
        ({"policyName": "static", "entries": {"8f": "2"}}, None),
        (A,),
        2,
        ["cpu_manager_state: entries name containers by id, as before Kubernetes 1.18"],
        id="version-1",
    ),
    pytest.param(
        ('{"policyName":"static","entries":{"u":{"main":"2","main":"3"}}}', None),
        (A,),
        2,
        ["cpu_manager_state: 'main' stands twice in one object"],
        id="container-named-twice",
    ),
    pytest.param(
        (static("0-7"), '{"policyName":"Static","entries":{"u":{"main":[{"type":"memory"}]}}}'),
        (A,),
        2,
        ["memory_manager_state: u main: no list of memory blocks"],
        id="damaged-memory-state",
    ),
    pytest.param(
        (static("0-7"), '{"policyName":"Sta'),
        (A,),
        2,
        ["memory_manager_state: it is not JSON"],
        id="cut-off-memory-state",
    ),
]


@pytest.mark.parametrize(("states", "objects", "status", "said"), CASES)
def test_what_is_said(
    asked: Check,
    states: tuple[Any, Any],
    objects: tuple[Any, ...],
    status: int,
    said: list[str],
) -> None:
    found, shown = asked(states, objects)
    assert found == status
    for each in said:
        assert each in shown
    is_strict = any("strict" in each or "keeps CPUs" in each for each in said)
    assert ("strict-cpu-reservation" in shown) == is_strict
