"""`numapin simulate`: answers line by line, and errors of scenarios that cannot be read."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from numapin_cli.main import main
from support.values.placement import pod_body

MACHINE = {
    "cpus": [[cpu, cpu, 0, -1, 0] for cpu in range(4)],
    "numaNodes": [{"id": 0, "memoryBytes": 1 << 33}],
}


@pytest.fixture
def machines(tmp_path: Path) -> Path:
    (tmp_path / "small.json").write_text(json.dumps(MACHINE))
    (tmp_path / "broken.json").write_text('{"cpus": []}')
    return tmp_path


def scenario(name: str = "s", **fields: Any) -> dict[str, Any]:
    policy = {"reserved": {"cpus": "0"}}
    steps = [{"add": pod_body("a", "2")}, {"add": pod_body("b", "2")}, {"remove": "a"}]
    return {"name": name, "machine": "small", "policy": policy, "steps": steps} | fields


def run(machines: Path, *lines: object, flags: tuple[str, ...] = ()) -> int:
    text = "".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines)
    (machines / "asked.jsonl").write_text(text)
    file = str(machines / "asked.jsonl")
    return main(["simulate", "--machines", str(machines), *flags, file])


def answers(capsys: pytest.CaptureFixture[str]) -> tuple[list[dict[str, Any]], str]:
    captured = capsys.readouterr()
    return [json.loads(line) for line in captured.out.splitlines()], captured.err


def test_every_step_is_answered(machines: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(machines, scenario()) == 0
    (given,), errors = answers(capsys)
    placed, refused, removed = given["steps"]
    assert placed == {
        "admitted": True,
        "containers": {"c": {"cpus": "1-2", "mems": "", "memory": []}},
        "shared": "0,3",
    }
    assert (refused["admitted"], refused["reason"]) == (False, "NotEnoughCPUs")
    assert "wanted 2 CPUs, 1 free" in refused["message"]
    assert removed == {"shared": "0-3"}
    assert errors == ""


def test_devices_are_answered_by_id(machines: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A container that has devices alone is listed too."""
    nic = {"example.com/nic": "1"}
    pods = [pod_body(name, "1500m") for name in "abc"]
    for each in pods:
        for amounts in each["spec"]["containers"][0]["resources"].values():
            amounts.update(nic)
    nics = [{"id": "n0", "healthy": False}, {"id": "n1", "numaNodes": [0]}]
    steps = [{"add": pods[0]}, {"add": pods[1]}, {"remove": "a"}, {"add": pods[2]}]
    assert run(machines, scenario(steps=steps, devices={"example.com/nic": nics})) == 0
    (answered,), _ = answers(capsys)
    first, refused, _, again = answered["steps"]
    assert first["containers"] == {
        "c": {"cpus": "", "mems": "", "memory": [], "devices": {"example.com/nic": ["n1"]}}
    }
    assert (refused["reason"], refused["message"]) == (
        "NotEnoughDevices",
        "wanted 1 of example.com/nic, none free",
    )
    assert again == first


def test_it_reads_standard_input_and_an_inline_machine(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(scenario(machine=MACHINE)) + "\n\n"))
    assert main(["simulate"]) == 0
    assert len(answers(capsys)[0]) == 1


def test_a_policy_that_cannot_work_there_is_an_answer(
    machines: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(machines, scenario(policy={"reserved": {"cpus": "9"}})) == 0
    (given,), _ = answers(capsys)
    assert given == {
        "name": "s",
        "error": "reserved.cpus: this machine has no online CPU 9; it has 0-3",
    }


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ("{", "not JSON: Expecting property name"),
        ("[]", "must be a JSON object with name, machine, policy, steps"),
        ({"machine": "small"}, "name: is missing"),
        (scenario(more=1), "more: is not a field of a scenario"),
        (scenario(machine="none"), "machine: there is no none.json"),
        (scenario(machine="../asked"), "machine: there is no ../asked.json"),
        (scenario(machine="a\0b"), "machine: there is no a\0b.json"),
        (scenario(machine=7), "machine: must be the name of a machine, or a machine"),
        (scenario(machine="broken"), "broken.json: "),
        (
            scenario(policy={"options": {"fullPCPUOnly": True}}),
            "policy.options.fullPCPUOnly: there is no such field; remove it or correct its name",
        ),
        (
            scenario(policy={"topology": {"policy": "Best"}}),
            "policy.topology.policy: input should be 'None'",
        ),
        (
            scenario(policy={"reserved": {"cpus": "3-1"}}),
            "policy.reserved.cpus: '3-1' is not a list of ids",
        ),
        (scenario(node=[]), "node: must be a Node, such as one of kubectl get nodes"),
        (
            scenario(node={"status": {"capacity": {"cpu": "x"}}}),
            "node: status.capacity or status.allocatable of the Node: 'x'",
        ),
        (scenario(namespaces={"a": 1}), "namespaces: must be an object: each name with its labels"),
        (scenario(devices=[]), "devices: must be an object: the name of each resource"),
        (
            scenario(devices={"nvidia": []}),
            "devices.nvidia: is not the name of an extended resource; write one such as",
        ),
        (scenario(devices={"hugepages-2Mi": []}), "is not the name of an extended resource"),
        (scenario(devices={"a.b/c": {}}), "devices.a.b/c: must be a list of devices"),
        (scenario(devices={"a.b/c": ["d0"]}), "devices.a.b/c[0]: must be an object"),
        (
            scenario(devices={"a.b/c": [{"id": "d", "numaNode": 0}]}),
            "devices.a.b/c[0].numaNode: is not a field of a device; remove it or correct",
        ),
        (scenario(devices={"a.b/c": [{}]}), "devices.a.b/c[0].id: is missing or no text; give"),
        (scenario(devices={"a.b/c": [{"id": 1}]}), "devices.a.b/c[0].id: is missing or no text"),
        (
            scenario(devices={"a.b/c": [{"id": "d"}, {"id": "d"}]}),
            "devices.a.b/c[1].id: d is there already; give each device another id",
        ),
        (
            scenario(devices={"a.b/c": [{"id": "d", "numaNodes": 0}]}),
            "devices.a.b/c[0].numaNodes: must be a list of numbers, such as [0]; [] if",
        ),
        (
            scenario(devices={"a.b/c": [{"id": "d", "numaNodes": [True]}]}),
            "devices.a.b/c[0].numaNodes: must be a list of numbers",
        ),
        (
            scenario(devices={"a.b/c": [{"id": "d", "numaNodes": [0, -1]}]}),
            "devices.a.b/c[0].numaNodes: the machine has no NUMA node -1; it has 0",
        ),
        (
            scenario(devices={"a.b/c": [{"id": "d", "healthy": "no"}]}),
            "devices.a.b/c[0].healthy: must be true or false",
        ),
        (scenario(steps={}), "steps: must be a list of steps"),
        (scenario(steps=[{"drop": "a"}]), 'steps[0]: must be {"add": <Pod>} or {"remove"'),
        (
            scenario(steps=[{"add": pod_body("a", "two")}]),
            "steps[0].add.spec.containers[0].resources.requests.cpu: 'two' is not a quantity",
        ),
        (
            scenario(steps=[{"add": pod_body("a")}, {"add": pod_body("a")}]),
            "steps[1]: pod a is there already",
        ),
    ],
)
def test_a_bad_scenario_is_named_with_line_and_field_and_the_next_is_answered(
    machines: Path, capsys: pytest.CaptureFixture[str], bad: object, message: str
) -> None:
    assert run(machines, scenario("first"), bad, scenario("last")) == 1
    given, errors = answers(capsys)
    assert "asked.jsonl: line 2: " in errors
    assert message in errors
    assert message in given[1]["error"]
    assert [len(each["steps"]) for each in (given[0], given[2])] == [3, 3]


def test_as_operator_answers_without_the_kubelet_s_faults(
    machines: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    strict = scenario(policy={"reserved": {"cpus": "0", "strict": True}})
    strict["steps"] = [{"add": pod_body("a", "3")}]
    assert run(machines, strict) == 0
    assert run(machines, strict, flags=("--as-operator",)) == 0
    (kubelet, operator), _ = answers(capsys)
    assert kubelet["steps"][0]["shared"] == ""
    assert operator["steps"][0]["reason"] == "SharedPoolEmpty"


def on_node(**fields: Any) -> dict[str, Any]:
    pod = pod_body("a", "2")
    pod["metadata"] |= {"namespace": "web", "labels": {"app": "db"}}
    node = {
        "metadata": {"labels": {"pool": "fast"}},
        "status": {"capacity": {"cpu": "4"}, "allocatable": {"cpu": "2500m"}},
    }
    return scenario(node=node, namespaces={"web": {"team": "x"}}, steps=[{"add": pod}], **fields)


@pytest.mark.parametrize(
    ("policy", "cpus", "shared"),
    [
        ({}, "2-3", "0-1"),  # 1.5 of 4 CPUs are not allocatable
        ({"nodeSelector": {"pool": "fast"}}, "2-3", "0-1"),
        ({"nodeSelector": {"pool": "slow"}}, None, "0-3"),
        ({"mode": "None"}, None, "0-3"),
        ({"pods": {"podSelector": {"matchLabels": {"app": "db"}}}}, "2-3", "0-1"),
        ({"pods": {"podSelector": {"matchLabels": {"app": "web"}}}}, None, "0-3"),
        ({"pods": {"namespaceSelector": {"matchLabels": {"team": "x"}}}}, "2-3", "0-1"),
        ({"pods": {"namespaceSelector": {"matchLabels": {"team": "y"}}}}, None, "0-3"),
    ],
)
def test_as_operator_obeys_mode_selectors_and_the_node(
    machines: Path,
    capsys: pytest.CaptureFixture[str],
    policy: dict[str, Any],
    cpus: str | None,
    shared: str,
) -> None:
    assert run(machines, on_node(policy=policy), flags=("--as-operator",)) == 0
    (given,), _ = answers(capsys)
    (step,) = given["steps"]
    assert step["admitted"]
    assert step.get("containers", {}).get("c", {}).get("cpus") == cpus
    assert step["shared"] == shared


@pytest.mark.parametrize(
    ("policy", "error"),
    [
        ({"reserved": {"cpus": "0", "count": 1}}, "InvalidPolicy: spec.reserved: give cpus or"),
        ({"reserved": {"cpus": "9"}}, "ImpossibleOnNode: reserved.cpus: this machine has no"),
    ],
)
def test_as_operator_says_why_a_policy_gives_nothing(
    machines: Path, capsys: pytest.CaptureFixture[str], policy: dict[str, Any], error: str
) -> None:
    assert run(machines, on_node(policy=policy), flags=("--as-operator",)) == 0
    (given,), _ = answers(capsys)
    assert given["error"].startswith(error)


def test_a_file_that_is_not_text_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = tmp_path / "asked.jsonl"
    asked.write_bytes(b"\xff\xfe")
    assert main(["simulate", str(asked)]) == 1
    assert "asked.jsonl: not UTF-8 text; give a file of scenarios" in capsys.readouterr().err


def test_a_file_that_is_not_there_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "/nowhere/asked.jsonl"]) == 1
    assert "/nowhere/asked.jsonl: No such file or directory; give a file" in capsys.readouterr().err


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_shown_on_a_terminal_only(
    machines: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("numapin_cli.commands.simulate._PROGRESS_SECONDS", -1.0)
    screen = _Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    assert run(machines, scenario(), scenario()) == 0
    assert "2 scenarios, " in screen.getvalue()
    quiet = io.StringIO()
    monkeypatch.setattr("sys.stderr", quiet)
    assert run(machines, scenario()) == 0
    assert quiet.getvalue() == ""
