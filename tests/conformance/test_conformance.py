"""Every recorded answer of the kubelet, given again by the planner and by the command."""

import importlib.util
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from numapin_api.cpuset import MemSet
from numapin_api.schema.plain_assignment import ContainerDevices, DeviceCount, DevicesStatus
from numapin_cli.commands.simulate import answer
from numapin_cli.inputs.machines import Machines
from numapin_cli.inputs.scenario import Scenario, parse_scenario
from numapin_cli.main import main
from numapin_operator.placement import (
    KUBELET,
    ContainerKind,
    Devices,
    Node,
    NodeDevices,
    PlacementError,
    PodAllocation,
    PodView,
    resolve,
)

Given = list[tuple[str, int, object]] | None


def _load_compare() -> ModuleType:
    file = Path(__file__).with_name("compare.py")
    spec = importlib.util.spec_from_file_location("conformance_compare", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


compare = _load_compare()

COUNTS = {
    "devices": 536,
    "hugepages": 37,
    "init": 300,
    "memory": 258,
    "options": 300,
    "plain": 300,
    "podlevel": 300,
    "topology": 300,
}


@pytest.mark.parametrize("name", COUNTS)
def test_every_answer_is_the_kubelet_s(name: str) -> None:
    scenarios = compare.read_scenarios(compare.FOLDER / f"{name}.jsonl.gz")
    machines = Machines(compare.MACHINES)
    differences = {}
    for scenario in scenarios:
        given = answer(parse_scenario(compare.asked(scenario), machines), KUBELET)
        if found := compare.difference(scenario, given):
            differences[scenario["name"]] = found
    assert differences == {}
    assert len(scenarios) == COUNTS[name]


def test_the_command_gives_the_same_answers(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    scenarios = compare.read_scenarios(compare.FOLDER / "memory.jsonl.gz")
    asked = tmp_path / "asked.jsonl"
    asked.write_text("".join(map(compare.asked, scenarios)))
    assert main(["simulate", "--machines", str(compare.MACHINES), str(asked)]) == 0
    given = [compare.json.loads(line) for line in capsys.readouterr().out.splitlines()]
    found = [
        compare.difference(scenario, each) for scenario, each in zip(scenarios, given, strict=True)
    ]
    assert found == [None] * len(scenarios)


def test_the_comparison_finds_what_differs() -> None:
    scenario = compare.read_scenarios(compare.FOLDER / "plain.jsonl.gz")[0]
    right = {"name": scenario["name"], "steps": scenario["expect"]}
    assert compare.difference(scenario, right) is None
    wrongs: list[tuple[int, dict[str, Any]]] = [
        (0, {"shared": "0"}),
        (0, {"admitted": not scenario["expect"][0]["admitted"]}),
        (0, {"containers": {"c0": {"cpus": "1"}}}),
    ]
    for step, wrong in wrongs:
        changed = [dict(each) for each in scenario["expect"]]
        changed[step] |= wrong
        assert compare.difference(scenario, right | {"steps": changed})
    assert compare.difference(scenario, right | {"steps": []})
    assert compare.difference(scenario, {"name": scenario["name"], "error": "no"})
    assert compare.difference(scenario, {})


def test_the_comparison_finds_wrong_devices() -> None:
    """One resource each: ids were recorded, NUMA nodes, and a number."""
    devices = {
        "a.b/id": [{"id": "0", "numaNodes": [0]}, {"id": "1", "numaNodes": [], "healthy": False}],
        "a.b/near": [{"id": one, "numaNodes": [int(one) % 2]} for one in "0123"],
        "a.b/count": [{"id": one, "numaNodes": [0]} for one in "01"],
    }
    init = {"name": "i", "restartPolicy": "Always"}
    spec = {"initContainers": [init], "containers": [{"name": "c"}]}
    adds = [{"add": {"metadata": {"uid": uid}, "spec": spec}} for uid in "pq"]
    recorded = {
        "devices": {"a.b/id": ["0"]},
        "deviceNUMANodes": {"a.b/near": [[0]]},
        "deviceCount": {"a.b/count": 1},
    }
    right = {"a.b/id": ["0"], "a.b/near": ["2"], "a.b/count": ["1"]}
    first = {"admitted": True, "containers": {"c": recorded}, "shared": "0"}
    scenario = {
        "name": "d",
        "devices": devices,
        "steps": [adds[0], {"remove": "p"}, adds[1]],
        "expect": [first, {"shared": "0"}, first],
    }

    def found(*of_containers: dict[str, Any], again: bool = False) -> str | None:
        steps = [{"admitted": True, "shared": "0"} for _ in of_containers]
        for step, each in zip(steps, of_containers, strict=True):
            step |= {"containers": {name: {"devices": one} for name, one in each.items()}}
        asked = dict(scenario)
        if again:
            asked |= {"steps": adds, "expect": [first, first]}
        else:
            steps.insert(1, {"shared": "0"})
        found: str | None = compare.difference(asked, {"name": "d", "steps": steps})
        return found

    assert found({"c": right}, {"c": right}) is None
    for wrong, said in (
        (right | {"a.b/id": ["1"]}, "not different, existing, healthy"),
        (right | {"a.b/id": ["9"]}, "not different, existing, healthy"),
        (right | {"a.b/count": ["1", "1"]}, "not different, existing, healthy"),
        (right | {"a.b/near": ["1"]}, "deviceNUMANodes [[1]], expected [[0]]"),
        (right | {"a.b/count": ["0", "1"]}, "deviceCount 2, expected 1"),
        ({"a.b/id": ["0"], "a.b/near": ["0"]}, "expected of ['a.b/count', 'a.b/id', 'a.b/near']"),
        ({}, "expected of ['a.b/count', 'a.b/id', 'a.b/near']"),
    ):
        assert said in str(found({"c": right}, {"c": wrong}))
    assert "devices of ['a.b/id'], expected of []" in str(
        found({"c": right, "i": {"a.b/id": ["0"]}}, {"c": right})
    )
    assert "are in use" in str(found({"c": right}, {"c": right}, again=True))


UNLIKE = {
    "devices-cpus-23-0056": "one device has no NUMA nodes: it has no say, the other has",
    "devices-init-23-0021": "only an init container has devices, and none is listed for it",
    "devices-init-23-0060": "an init container has one of its own, and none is listed for it",
    "devices-init-23-0103": "only an init container has devices, and none is listed for it",
    "devices-odd-23-0007": "one device has no NUMA nodes: it has no say, the others have",
    "devices-odd-23-0022": "a container requests no devices, and has a preference in the kubelet",
    "devices-odd-23-0070": "one device has no NUMA nodes: it has no say, the others have",
    "devices-odd-23-0076": "no device has NUMA nodes: none has a say, which the kubelet lacks",
    "devices-podlevel-23-0039": "the kubelet had lost CPUs of a pod that it had refused before",
}
"""Scenarios under BestEffort in which the kubelet's hints were others than those of its choice."""


def test_devices_that_are_given_lead_to_the_same_cpus_and_memory() -> None:
    """The kubelet's choice of devices as facts, and nothing of how it chose them."""
    alike, unlike = 0, set[str]()
    for scenario in compare.read_scenarios(compare.FOLDER / "devices.jsonl.gz"):
        played = parse_scenario(compare.asked(scenario), Machines(compare.MACHINES))
        if "expectError" in scenario or played.policy.topology.policy == "None":
            continue
        for chosen, placed in _with_given_devices(played):
            if chosen == placed:
                alike += 1
            else:
                assert played.policy.topology.policy == "BestEffort"
                unlike.add(scenario["name"])
    assert (alike, unlike) == (915, set(UNLIKE))


def _with_given_devices(played: Scenario) -> Iterator[tuple[Given, Given]]:
    """What each pod that fits gets where devices are chosen, and where they are given."""
    policy = resolve(played.topology, played.policy, KUBELET)
    there = tuple(
        DeviceCount(name, 1, MemSet.from_mask(one.numa_nodes))
        for name, each in played.devices.items()
        if any(one.numa_nodes for one in each)
        for one in each
    )
    kubelet, node = Node(policy, played.devices), Node(policy)
    for step in played.steps:
        pod = step.add
        if pod is None:
            kubelet.release(step.remove)
            node.release(step.remove)
            continue
        try:
            chosen = kubelet.place(pod)
        except PlacementError:
            continue
        if pod.qos in played.policy.pods.qos_classes:
            listed = DevicesStatus(None, there, _listed(pod, chosen, played.devices))
            everywhere = policy.hint_merger.everywhere
            node.policy = replace(policy, devices=NodeDevices(listed, everywhere))
            yield _facts(chosen), _facts(_placed(node, pod))
            node.release(pod.uid)
            node.adopt(_without_devices(chosen))


def _listed(pod: PodView, chosen: PodAllocation, devices: Devices) -> tuple[ContainerDevices, ...]:
    """What the kubelet lists of a pod's devices: ordinary init containers are left out."""
    near = {(name, one.id): one.numa_nodes for name, each in devices.items() for one in each}
    init = {one.name for one in pod.containers if one.kind is ContainerKind.INIT}
    return tuple(
        ContainerDevices(pod.uid, one.name, name, 1, MemSet.from_mask(near[name, each]))
        for one in chosen.containers
        if one.name not in init
        for name, ids in one.devices
        for each in ids
    )


def _placed(node: Node, pod: PodView) -> PodAllocation | None:
    try:
        return node.place(pod)
    except PlacementError:
        return None


def _facts(given: PodAllocation | None) -> Given:
    """CPUs and memory of each container that has any; None for a refusal."""
    if given is None:
        return None
    return [(one.name, one.cpus, one.memory) for one in given.containers if one.cpus or one.memory]


def _without_devices(given: PodAllocation) -> PodAllocation:
    containers = (one._replace(devices=()) for one in given.containers)
    return given._replace(containers=tuple(containers))
