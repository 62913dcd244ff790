"""`numapin migrate`: what a policy would change for the containers of a static kubelet."""

import json
from pathlib import Path
from typing import Any

import pytest

from numapin_cli.main import main
from support.fakes.worlds.static_kubelet import MACHINE, POLICY, state, write
from support.values.operator import pod_body


def check(folder: Path, *more: str) -> int:
    files = ["-f", str(folder / "policy.yaml"), "-f", str(folder / "pods.json")]
    where = ["--machine", str(folder / "machine.json"), "--kubelet-root-dir", str(folder)]
    return main(["migrate", "--check", *files, *where, *more])


def test_containers_that_keep_their_cpus(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(folder) == 0
    assert capsys.readouterr().out.splitlines() == [
        "node-1: the kubelet has given CPUs to 2 containers",
        "  default/a main  4-5  keeps them",
        "  default/b main  2-3  keeps them",
        "shared CPUs: 0-1,6-7, as before",
    ]


def test_a_node_without_exclusive_containers(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(folder, pods=[])
    (folder / "cpu_manager_state").write_text('{"policyName":"static","defaultCpuSet":"0-7"}')
    assert check(folder) == 0
    assert "has given CPUs to 0 containers" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("policy", "entries", "said"),
    [
        ("", {"uid_a": {"main": "0,4"}}, "keeps them until it ends: uses 0, which is reserved now"),
        (
            ", pods: {podSelector: {matchLabels: {pin: yes}}}",
            {"uid_a": {"main": "4-5"}},
            "keeps them until it ends: is not selected any more",
        ),
        (
            ", options: {fullPCPUsOnly: true}",
            {"uid_c": {"main": "3"}},
            "keeps them until it ends: does not fit the policy: SMTAlignmentError",
        ),
    ],
)
def test_containers_that_the_policy_would_place_otherwise(
    folder: Path,
    policy: str,
    entries: dict[str, Any],
    said: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    write(folder, policy.replace("yes", '"yes"'), [pod_body("a"), pod_body("c", "1")])
    (folder / "cpu_manager_state").write_text(state(**entries))
    assert check(folder) == 0
    assert said in capsys.readouterr().out


@pytest.mark.parametrize(
    ("policy", "entries", "said"),
    [
        ("", {"uid_a": {"main": "4-6"}}, "would get CPUs 2-3: it has 3 CPUs, and requests 2"),
        ("", {"uid_a": {"main": "4,9"}}, "would get CPUs 4: CPUs 9 are not online"),
        ("", {"uid_a": {"other": "4-5"}}, "would share CPUs: its pod has no such container"),
        ("", {"uid_x": {"main": "4-5"}}, "no pod with this UID runs on the node"),
        (", mode: None", {"uid_a": {"main": "4-5"}}, "would share CPUs: the policy's mode is None"),
    ],
)
def test_containers_that_would_not_keep_their_cpus(
    folder: Path,
    policy: str,
    entries: dict[str, Any],
    said: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    write(folder, policy, [pod_body("a")])
    (folder / "cpu_manager_state").write_text(state(**entries))
    assert check(folder) == 1
    shown = capsys.readouterr().out
    assert said in shown
    assert "1 of 1 container would not keep CPUs now (marked !)" in shown


def test_cpus_that_only_one_of_both_keeps_from_all_pods(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "cpu_manager_state").write_text(state("6-7"))
    assert check(folder) == 0
    shown = capsys.readouterr().out
    assert "shared CPUs: 6-7, then 0-1,6-7" in shown
    assert 'reserved: {cpus: "0-1", strict: true} does' in shown
    (folder / "policy.yaml").write_text((POLICY % "").replace('"0-1"', '"0-1", strict: true'))
    assert check(folder) == 0
    assert "shared CPUs: 6-7, as before\n" in capsys.readouterr().out
    (folder / "cpu_manager_state").write_text(state())
    assert check(folder) == 0
    assert (
        "the policy keeps CPUs 0-1 from all pods, the kubelet does not" in capsys.readouterr().out
    )


@pytest.mark.parametrize(
    ("policy", "note"),
    [("", "default/a main: its memory stays on NUMA node 0"), (", memory: {policy: Static}", "")],
)
def test_memory_that_the_kubelet_binds(
    folder: Path, policy: str, note: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write(folder, policy, [pod_body("a")])
    (folder / "cpu_manager_state").write_text(state(uid_a={"main": "4-5"}))
    block = {"numaAffinity": [0], "type": "memory", "size": 64 << 20}
    memory = {"policyName": "Static", "machineState": {}, "entries": {"uid-a": {"main": [block]}}}
    (folder / "memory_manager_state").write_text(json.dumps(memory))
    assert check(folder) == 0
    shown = capsys.readouterr().out
    assert note in shown
    assert ("its memory" in shown) == bool(note)


def test_a_policy_that_is_impossible_on_the_machine(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "policy.yaml").write_text((POLICY % "").replace("0-1", "0-9"))
    assert check(folder) == 1
    assert "the policy cannot be put in force: ImpossibleOnNode" in capsys.readouterr().out


ISOLATED = MACHINE | {"isolatedCPUs": "2-7"}

ONLY_EXCLUSIVE = """\
apiVersion: numapin.io/v1beta1
kind: CpuPolicy
metadata: {name: web}
spec: {reserved: {cpus: "0-1", strict: %s}, isolatedCPUs: %s}
"""


def isolated(folder: Path, strict: str, use: str) -> None:
    """All CPUs but the reserved ones are isolated, and the kubelet reserves strictly."""
    (folder / "machine.json").write_text(json.dumps(ISOLATED))
    (folder / "policy.yaml").write_text(ONLY_EXCLUSIVE % (strict, use))
    (folder / "cpu_manager_state").write_text(state("6-7"))


def test_a_policy_that_cannot_be_in_force_is_the_reason_and_has_a_remedy(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The remedy that leaves the shared CPUs as they are comes before `strict: false`."""
    isolated(folder, "true", "ExclusiveOnly")
    assert check(folder) == 1
    shown = capsys.readouterr().out
    why = "ImpossibleOnNode: reserved: leaves no CPU for the shared pool; reserve fewer CPUs"
    assert f"would share CPUs: the policy cannot be in force ({why})" in shown
    assert "mode is None" not in shown
    assert f"{why}; with isolatedCPUs: Ignore every container keeps its CPUs" in shown
    isolated(folder, "true", "Ignore")
    assert check(folder) == 0
    assert "shared CPUs: 6-7, as before" in capsys.readouterr().out


def test_no_reservation_is_advised_that_the_policy_cannot_have(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    isolated(folder, "false", "ExclusiveOnly")
    assert check(folder) == 0
    advised = 'reserved: {cpus: "0-1", strict: true} with isolatedCPUs: Ignore does'
    assert advised in capsys.readouterr().out
    isolated(folder, "true", "Ignore")
    assert check(folder) == 0


def test_a_policy_of_mode_none_is_the_reason_alone(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(folder, ", mode: None")
    assert check(folder) == 1
    assert "would share CPUs: the policy's mode is None\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "cpu_manager_state: it is not JSON"),
        ('{"policyName":"none","defaultCpuSet":"","checksum":1353318690}', "its policy is none"),
        ('{"policyName":"static","entries":{"8f":"2"}}', "before Kubernetes 1.18"),
        (None, "cpu_manager_state: No such file or directory; run this as root on the node"),
    ],
)
def test_a_state_that_cannot_be_used(
    folder: Path, text: str | None, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = folder / "cpu_manager_state"
    file.unlink() if text is None else file.write_text(text)
    assert check(folder) == 2
    shown = capsys.readouterr()
    assert problem in shown.err
    assert shown.out == ""


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        (["--memory-manager-state", "/nowhere"], "/nowhere: No such file or directory"),
        (["--cpu-manager-state", "/nowhere"], "/nowhere: No such file or directory"),
        (["--node", "other"], "--node other: no pod is bound to it"),
        (["-f", "/nowhere"], "/nowhere: No such file or directory"),
    ],
)
def test_wrong_input(
    folder: Path, more: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check(folder, *more) == 2
    assert problem in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["--check", "--back"]])
def test_wrong_usage(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["migrate", *arguments])
    assert ended.value.code == 2


def test_nothing_to_plan(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["migrate", "--check", "--kubelet-root-dir", str(folder)]) == 2
    assert "name files with -f or --cluster" in capsys.readouterr().err
