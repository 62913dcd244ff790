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
