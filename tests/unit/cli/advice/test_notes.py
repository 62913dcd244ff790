"""What `plan` and `explain` say of memory without CPUs, and of KubeVirt's virtual machines."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from numapin_api.hardware.machine_file import parse_machine
from numapin_cli.main import main
from support.fakes.worlds.described_cluster import cluster, living_cluster
from support.values.operator import pod_body

Capture = pytest.CaptureFixture[str]

POLICY = """\
apiVersion: numapin.io/v1beta1
kind: CpuPolicy
metadata: {name: p}
spec:
  reserved: {cpus: "0"}
  memory: {policy: Preferred, nodesWithoutCPUs: Spill}
"""
CXL = {
    "cpus": [[cpu, cpu, cpu // 8, cpu // 8, cpu // 8] for cpu in range(16)],
    "numaNodes": [
        {"id": 0, "memoryBytes": 64 << 30, "distances": [10, 21, 14]},
        {"id": 1, "memoryBytes": 64 << 30, "distances": [21, 10, 24]},
        {"id": 2, "memoryBytes": 256 << 30, "distances": [14, 24, 10]},
    ],
}


def pod(name: str, memory: str, *labels: tuple[str, str], container: str = "main") -> Any:
    both = {"cpu": "2", "memory": memory}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop", "labels": dict(labels)},
        "spec": {"containers": [{"name": container, "resources": {"limits": both}}]},
    }


def notes(folder: Path, capsys: Capture, *pods: Any) -> dict[str, list[str]]:
    """The notes of a plan by the pods' names."""
    (folder / "machine.json").write_text(json.dumps(CXL))
    (folder / "given.yaml").write_text(f"{POLICY}---\n{yaml.safe_dump_all(pods)}")
    files = ("-f", str(folder / "given.yaml"), "--machine", str(folder / "machine.json"))
    assert main(["plan", *files]) == 0
    drawn = " ".join(capsys.readouterr().out.split())
    assert main(["plan", *files, "-o", "json"]) == 0
    (node,) = json.loads(capsys.readouterr().out)["nodes"]
    assert (" Notes " in drawn) == bool(node["notes"])
    return {one["pod"]: one["notes"] for one in node["notes"]}


def test_memory_on_a_numa_node_without_cpus_is_named_with_its_distance(
    tmp_path: Path, capsys: Capture
) -> None:
    found = notes(tmp_path, capsys, pod("near", "30Gi"), pod("large", "130Gi"))
    assert found == {
        "shop/large": [
            "memory of container main is on NUMA node 2, which has no CPUs, distance 14 from its "
            "CPUs: CXL or high-bandwidth memory"
        ]
    }


def choosing(name: str, text: str) -> Any:
    made = pod(name, "1Gi")
    made["metadata"]["annotations"] = {"numapin.io/numa-nodes": text}
    return made


def test_which_numa_node_a_pod_prefers_is_said_with_what_chose_it(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefers = f"{POLICY}  placement: {{numaNodes: Packed, podOverride: Allow}}\n"
    monkeypatch.setitem(globals(), "POLICY", prefers)
    found = notes(
        tmp_path, capsys, pod("plain", "1Gi"), choosing("own", "Spread"), choosing("typo", "pack")
    )
    assert {name: texts[0].split(":")[0] for name, texts in found.items()} == {
        "shop/plain": "placement.numaNodes is Packed",
        "shop/own": "its annotation numapin.io/numa-nodes is Spread",
        "shop/typo": "placement.numaNodes is Packed",
    }
    assert found["shop/typo"][0].endswith("'pack', not Packed or Spread: it has no effect")


def near(name: str, what: str, text: str) -> Any:
    made = pod(name, "1Gi")
    made["metadata"]["annotations"] = {f"numapin.io/{what}-near": text}
    return made


def test_near_what_a_pod_is_to_be_is_said_with_what_that_means_here(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    asks = near("asks", "require", "net/ens1f0"), near("likes", "prefer", "net/eth9")
    (said,) = notes(tmp_path, capsys, *asks)["shop/asks"]
    assert said.endswith("require-near has no effect: placement.podRequests is false")
    monkeypatch.setitem(globals(), "POLICY", f"{POLICY}  placement: {{podRequests: true}}\n")
    pci = [{"address": "0000:3b:00.0", "class": "0x0200", "numaNode": 1}]
    with_nic = CXL | {"pci": pci, "names": {"net/ens1f0": ["0000:3b:00.0"]}}
    monkeypatch.setitem(globals(), "CXL", with_nic)
    assert notes(tmp_path, capsys, *asks, pod("plain", "1Gi")) == {
        "shop/asks": [
            "it must be near net/ens1f0 (NUMA node 1), by its annotation numapin.io/require-near"
        ],
        "shop/likes": [
            "its annotation numapin.io/prefer-near: there is no net/eth9; there are net/ens1f0; "
            "the annotation has no effect"
        ],
    }


async def test_the_numa_node_of_a_placed_pod_is_explained(tmp_path: Path, capsys: Capture) -> None:
    spec = yaml.safe_load(POLICY)["spec"] | {"placement": {"numaNodes": "Spread"}}
    topology = parse_machine(json.dumps(CXL), "machine.json")
    world = await living_cluster(pod_body("a", "2"), spec=spec, topology=topology)
    (tmp_path / "now.json").write_text(world.dump())
    main(["explain", "a", "--cluster", str(tmp_path / "now.json"), "-o", "json"])
    (found,) = json.loads(capsys.readouterr().out)["explanations"]
    assert found["why"] == [
        "placement.numaNodes is Spread: of NUMA nodes that each have all of it, the one is "
        "preferred of which least is given out"
    ]


LABEL = ("kubevirt.io", "virt-launcher")


@pytest.mark.parametrize(
    ("given", "is_noted"),
    [
        (pod("virt-launcher-vm-x", "1Gi", LABEL, container="compute"), True),
        (pod("virt-launcher-vm-x", "1Gi", container="compute"), True),
        (pod("other", "1Gi", LABEL, container="compute"), True),
        (pod("other", "1Gi", container="compute"), False),
        (pod("virt-launcher-vm-x", "1Gi", LABEL, container="hook"), False),
    ],
    ids=["as KubeVirt makes it", "no labels", "another name", "not KubeVirt's", "no compute"],
)
def test_the_pod_of_a_virtual_machine_says_what_keeps_it_from_being_scheduled(
    given: Any, is_noted: bool, tmp_path: Path, capsys: Capture
) -> None:
    found = notes(tmp_path, capsys, given)
    assert ["cpumanager is true" in text for texts in found.values() for text in texts] == (
        [True] if is_noted else []
    )


def test_a_pending_virtual_machine_is_explained(tmp_path: Path, capsys: Capture) -> None:
    """By numapin it would fit; only KubeVirt's selector keeps it from being bound."""
    launcher = pod_body("virt-launcher-vm-x", "2", node="", labels=dict([LABEL]))
    launcher["spec"]["containers"][0]["name"] = "compute"
    (tmp_path / "now.json").write_text(cluster(launcher).dump())
    asked = ["explain", "virt-launcher-vm-x", "--cluster", str(tmp_path / "now.json"), "-o", "json"]
    main(asked)
    (found,) = json.loads(capsys.readouterr().out)["explanations"]
    assert found["verdict"] == "is bound to no node"
    assert "cpumanager is true" in found["why"][0]
    assert found["remedies"]


async def test_the_memory_of_a_placed_pod_is_explained(tmp_path: Path, capsys: Capture) -> None:
    world = await living_cluster(
        pod_body("large", "2", memory="130Gi"),
        spec=yaml.safe_load(POLICY)["spec"],
        topology=parse_machine(json.dumps(CXL), "machine.json"),
    )
    (tmp_path / "now.json").write_text(world.dump())
    main(["explain", "large", "--cluster", str(tmp_path / "now.json"), "-o", "json"])
    (found,) = json.loads(capsys.readouterr().out)["explanations"]
    assert "memory of container main is on NUMA node 2" in found["why"][0]


NIC = "example.com/nic"
NEAR_1 = {"resource": NIC, "numaNodes": "1", "count": 1, "ids": ["nic1"]}


@pytest.mark.parametrize(
    ("rows", "message", "expected"),
    [
        pytest.param(
            [NEAR_1],
            None,
            [
                "1 example.com/nic (nic1) on NUMA node 1, far from all of its CPUs, which are on 0",
            ],
            id="far",
        ),
        pytest.param(
            [NEAR_1 | {"numaNodes": "0-1", "ids": []}],
            None,
            ["1 example.com/nic on NUMA nodes 0-1, near its CPUs"],
            id="near",
        ),
        pytest.param(
            [NEAR_1 | {"numaNodes": ""}],
            None,
            ["1 example.com/nic (nic1), near no NUMA node that is known"],
            id="nowhere",
        ),
        pytest.param(
            [],
            "the kubelet does not answer",
            [
                "the node has not reported which example.com/nic it has: the kubelet does not "
                "answer; a new pod waits 2 s, then CPUs are chosen without",
            ],
            id="not-reported",
        ),
    ],
)
async def test_the_devices_of_a_pod_are_explained(
    rows: list[dict[str, Any]],
    message: str | None,
    expected: list[str],
    tmp_path: Path,
    capsys: Capture,
) -> None:
    asking = pod_body("a", "2")
    for amounts in asking["spec"]["containers"][0]["resources"].values():
        amounts[NIC] = "1"
    world = await living_cluster(
        asking,
        spec={"reserved": {"cpus": "0"}},
        topology=parse_machine(json.dumps(CXL), "machine.json"),
    )
    devices: dict[str, Any] = {
        "resources": [{"resource": NIC, "numaNodes": "1", "count": 1}],
        "containers": [one | {"podUID": "uid-a", "container": "main"} for one in rows],
    }
    world.cluster.assignments["node-1"]["status"]["devices"] = devices | (
        {"message": message} if message else {}
    )
    (tmp_path / "now.json").write_text(world.dump())
    main(["explain", "a", "--cluster", str(tmp_path / "now.json"), "-o", "json"])
    (found,) = json.loads(capsys.readouterr().out)["explanations"]
    assert [one["text"] for one in found["facts"] if NIC in one["text"]] == expected
    main(["explain", "a", "--cluster", str(tmp_path / "now.json")])
    assert NIC in " ".join(capsys.readouterr().out.split())


async def test_a_plan_says_that_devices_are_not_known_yet(tmp_path: Path, capsys: Capture) -> None:
    world = await living_cluster(
        spec={"reserved": {"cpus": "0"}}, topology=parse_machine(json.dumps(CXL), "machine.json")
    )
    nic = {"resource": NIC, "numaNodes": "1", "count": 1}
    world.cluster.assignments["node-1"]["status"]["devices"] = {"resources": [nic]}
    (tmp_path / "now.json").write_text(world.dump())
    asking = pod("new", "1Gi")
    asking["spec"]["containers"][0]["resources"]["limits"][NIC] = "1"
    (tmp_path / "pod.yaml").write_text(yaml.safe_dump(asking))
    files = ("--cluster", str(tmp_path / "now.json"), "-f", str(tmp_path / "pod.yaml"))
    assert main(["plan", *files, "--node", "node-1", "-o", "json"]) == 0
    (node,) = json.loads(capsys.readouterr().out)["nodes"]
    assert node["notes"] == [
        {
            "pod": "shop/new",
            "notes": [
                "the kubelet chooses its devices of example.com/nic when it starts; this plan does "
                "not know them, and they have no say in it"
            ],
        }
    ]
