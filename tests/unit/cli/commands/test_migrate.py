"""`numapin migrate`: what a policy would change for the containers of a static kubelet."""

import json
from pathlib import Path
from typing import Any

import pytest

from numapin_api.cpuset import CpuSet
from numapin_cli.main import main
from support.fakes.worlds.described_cluster import World, cluster
from support.values.operator import condition, pod_body

MACHINE = {
    "cpus": [[cpu, cpu // 2 * 2, 0, -1, 0] for cpu in range(8)],
    "numaNodes": [{"id": 0, "memoryBytes": 8 << 30}],
}
POLICY = """\
apiVersion: numapin.io/v1alpha1
kind: CpuPolicy
metadata: {name: web}
spec: {reserved: {cpus: "0-1"}%s}
"""
GIVEN = {"uid-a": {"main": "4-5"}, "uid-b": {"main": "2-3"}}


def state(shared: str | None = None, **entries: dict[str, str]) -> str:
    """The CPU manager's state; all CPUs that it gives to no container are shared."""
    pods = {uid.replace("_", "-"): one for uid, one in entries.items()} or GIVEN
    given = CpuSet.union(CpuSet.parse(cpus) for one in pods.values() for cpus in one.values())
    shared = str(CpuSet(range(8)) - given) if shared is None else shared
    content = {"policyName": "static", "defaultCpuSet": shared, "entries": pods, "checksum": 1}
    return json.dumps(content)


def write(folder: Path, policy: str = "", pods: list[Any] | None = None) -> None:
    listed = [pod_body("a"), pod_body("b")] if pods is None else pods
    (folder / "policy.yaml").write_text(POLICY % policy)
    (folder / "pods.json").write_text(json.dumps({"kind": "List", "items": listed}))
    (folder / "machine.json").write_text(json.dumps(MACHINE))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The files of one machine with two pods, and the kubelet's state."""
    write(tmp_path)
    (tmp_path / "cpu_manager_state").write_text(state())
    return tmp_path


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
apiVersion: numapin.io/v1alpha1
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


@pytest.fixture
def dumped(folder: Path) -> World:
    """A cluster of two nodes, whose NodeAssignments are written already."""
    world = cluster(pod_body("a"), pod_body("b"))
    (folder / "now.json").write_text(world.dump())
    return world


def of_cluster(folder: Path, what: str, *more: str) -> int:
    known = ["--cluster", str(folder / "now.json"), "--kubelet-root-dir", str(folder)]
    return main(["migrate", what, *known, *more])


@pytest.mark.usefixtures("dumped")
def test_a_node_assignment_must_say_the_same_already(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert of_cluster(folder, "--check") == 2
    assert "2 Nodes are given; choose with --node" in capsys.readouterr().err
    (folder / "cpu_manager_state").write_text(state(uid_a={"main": "2-3"}, uid_b={"main": "6-7"}))
    assert of_cluster(folder, "--check", "--node", "node-1") == 1
    shown = capsys.readouterr().out
    assert "default/a main  2-3  keeps them\n" in shown
    assert "default/b main  6-7  keeps them, but its NodeAssignment does not say so yet" in shown
    assert "1 of 2 containers would not keep CPUs now (marked !)" in shown
    (folder / "cpu_manager_state").write_text(state(uid_a={"main": "2-3"}, uid_b={"main": "4-5"}))
    assert of_cluster(folder, "--check", "--node", "node-1") == 0


def test_a_node_on_which_numapin_is_not_installed_yet(
    folder: Path, dumped: World, capsys: pytest.CaptureFixture[str]
) -> None:
    dumped.cluster.assignments.clear()
    (folder / "now.json").write_text(dumped.dump())
    assert of_cluster(folder, "--check", "--node", "node-1") == 2
    assert "the hardware of node node-1 is not known" in capsys.readouterr().err
    machine = ("--machine", str(folder / "machine.json"))
    assert of_cluster(folder, "--check", "--node", "node-1", *machine) == 0
    assert "default/b main  2-3  keeps them\n" in capsys.readouterr().out


def test_a_node_that_is_stalled_by_the_kubelet_alone(folder: Path, dumped: World) -> None:
    body = dumped.cluster.assignments["node-1"]
    body["status"]["conditions"] = [condition("Stalled", reason="KubeletStaticPolicy")]
    (folder / "now.json").write_text(dumped.dump())
    (folder / "cpu_manager_state").write_text(state(uid_a={"main": "2-3"}, uid_b={"main": "4-5"}))
    assert of_cluster(folder, "--check", "--node", "node-1") == 0


@pytest.mark.usefixtures("dumped")
def test_the_state_for_the_way_back_is_what_the_assignment_has_given(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert of_cluster(folder, "--back", "--node", "node-1") == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out) == {
        "policyName": "static",
        "defaultCpuSet": "0-1,6-7",
        "entries": {"uid-a": {"main": "2-3"}, "uid-b": {"main": "4-5"}},
    }
    assert "reserves CPUs among 0-1,6-7" in shown.err
    (folder / "cpu_manager_state").write_text(shown.out)
    assert of_cluster(folder, "--check", "--node", "node-1") == 0


def test_strictly_reserved_cpus_are_in_no_list_on_the_way_back(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    world = cluster(pod_body("a"), spec={"reserved": {"count": 2, "strict": True}})
    (folder / "now.json").write_text(world.dump())
    assert of_cluster(folder, "--back", "--node", "node-1") == 0
    assert json.loads(capsys.readouterr().out)["defaultCpuSet"] == "4-7"


@pytest.mark.usefixtures("dumped")
@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ([], "2 NodeAssignments are given; choose with --node"),
        (["--node", "other"], "there is no NodeAssignment other"),
    ],
)
def test_wrong_input_for_the_way_back(
    folder: Path, more: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert of_cluster(folder, "--back", *more) == 2
    assert problem in capsys.readouterr().err


def test_an_assignment_that_gives_no_cpus_has_no_way_back(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    world = cluster(spec={"mode": "None"})
    (folder / "now.json").write_text(world.dump())
    assert of_cluster(folder, "--back", "--node", "node-1") == 2
    assert "NodeAssignment node-1: it gives no CPUs" in capsys.readouterr().err
