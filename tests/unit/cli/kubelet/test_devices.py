"""`numapin simulate --as-operator` with devices: the kubelet gives them first, without CPUs."""

import json
from pathlib import Path
from typing import Any

import pytest

from numapin_api.hardware.machine_file import machine_document
from numapin_cli.main import main
from support.values.placement import machine, pod_body

NIC = "example.com/nic"


def asking(uid: str, **spec: Any) -> dict[str, Any]:
    """A Guaranteed pod of one CPU and one NIC."""
    made = pod_body(uid)
    for amounts in made["spec"]["containers"][0]["resources"].values():
        amounts[NIC] = "1"
    made["spec"] |= spec
    return made


def answered(
    folder: Path, capsys: pytest.CaptureFixture[str], nics: list[str], *steps: dict[str, Any]
) -> list[dict[str, Any]]:
    """The answer to each step, on two NUMA nodes of 4 CPUs with NICs near these NUMA nodes."""
    devices = [{"id": f"n{at}", "numaNodes": [int(one)]} for at, one in enumerate(nics)]
    asked = {
        "name": "s",
        "machine": machine_document(machine(8, numa_nodes=2)),
        "policy": {"topology": {"policy": "SingleNUMANode"}, "reserved": {"cpus": "0"}},
        "devices": {NIC: devices},
        "steps": list(steps),
    }
    (folder / "asked.jsonl").write_text(json.dumps(asked))
    assert main(["simulate", "--as-operator", str(folder / "asked.jsonl")]) == 0
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["steps"]
    return found


def test_cpus_follow_the_devices(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pods = [asking("a"), asking("b"), pod_body("c")]
    first, second, plain = answered(tmp_path, capsys, ["1", "1"], *({"add": pod} for pod in pods))
    assert first["containers"] == {
        "c": {"cpus": "4", "mems": "", "memory": [], "devices": {NIC: ["n0"]}}
    }
    assert second["containers"]["c"]["devices"] == {NIC: ["n1"]}
    assert [one["containers"]["c"]["cpus"] for one in (second, plain)] == ["5", "1"]


def test_the_kubelet_aligns_devices_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It gives the first one although no CPUs are left near it, and numapin refuses the pod."""
    big = {"add": pod_body("big", "3")}
    placed, refused = answered(tmp_path, capsys, ["0", "1"], big, {"add": asking("a")})
    assert placed["containers"]["c"]["cpus"] == "1-3"
    assert refused["reason"] == "TopologyAffinityError"
    assert refused["message"].startswith(
        f"1 {NIC} is on NUMA node 0, where 0 CPUs are free; topology policy SingleNUMANode demands "
        "1 CPU there"
    )


def test_a_pod_that_the_kubelet_refuses_is_not_on_the_node(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    steps: list[dict[str, Any]] = [{"add": asking("a")}, {"add": asking("b")}]
    steps += [{"remove": "a"}, {"add": asking("c")}]
    first, refused, removed, again = answered(tmp_path, capsys, ["1"], *steps)
    assert (refused["admitted"], refused["shared"]) == (False, first["shared"])
    assert removed == {"shared": "0-7"}
    assert again == first


def test_an_init_container_leaves_its_device(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pod = asking("a")
    pod["spec"]["initContainers"] = [pod["spec"]["containers"][0] | {"name": "i"}]
    (placed,) = answered(tmp_path, capsys, ["1"], {"add": pod})
    assert {name: one["cpus"] for name, one in placed["containers"].items()} == {"i": "4", "c": "4"}
    assert {name: one["devices"] for name, one in placed["containers"].items()} == {
        "i": {NIC: ["n0"]},
        "c": {NIC: ["n0"]},
    }
