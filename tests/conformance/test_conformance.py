"""Every recorded answer of the kubelet, given again by the planner and by the command."""

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from numapin_cli.commands.simulate import answer
from numapin_cli.inputs.machines import Machines
from numapin_cli.inputs.scenario import parse_scenario
from numapin_cli.main import main
from numapin_operator.placement import KUBELET


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
