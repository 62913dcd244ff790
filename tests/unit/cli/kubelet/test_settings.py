"""The CpuPolicy that does what a kubelet of some configuration does."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from numapin_api.cpupolicy import CpuPolicySpec
from numapin_cli.kubelet.settings import translate
from numapin_cli.main import main
from numapin_cli.subcommand import CommandError

Capture = pytest.CaptureFixture[str]
Body = dict[str, Any]
STATIC: Body = {"cpuManagerPolicy": "static", "reservedSystemCPUs": "0"}
MEMORY: Body = {
    **STATIC,
    "memoryManagerPolicy": "Static",
    "reservedMemory": [{"numaNode": 0, "limits": {"memory": "100Mi"}}],
}
KIND = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}


def spec(**given: Any) -> Body:
    """The spec for a static kubelet with other settings, without what is always there."""
    made = dict(translate({**STATIC, **given}).spec)
    assert made.pop("mode") == "Static"
    if made["reserved"] == {"cpus": "0"}:
        del made["reserved"]
    return made


def notes(configuration: Body) -> str:
    return "\n".join(translate(configuration).notes)


@pytest.mark.parametrize(
    ("option", "part", "field"),
    [
        ("full-pcpus-only", "options", "fullPCPUsOnly"),
        ("distribute-cpus-across-numa", "options", "distributeCPUsAcrossNUMA"),
        ("align-by-socket", "options", "alignBySocket"),
        ("distribute-cpus-across-cores", "options", "distributeCPUsAcrossCores"),
        ("prefer-align-cpus-by-uncorecache", "options", "preferAlignCPUsByUncoreCache"),
        ("strict-cpu-reservation", "reserved", "strict"),
    ],
)
def test_options_of_the_cpu_manager(option: str, part: str, field: str) -> None:
    assert spec(cpuManagerPolicyOptions={option: "true"})[part][field] is True
    assert spec(cpuManagerPolicyOptions={option: "false"}) == {}


@pytest.mark.parametrize(
    ("given", "topology"),
    [
        ({"topologyManagerPolicy": "none"}, {}),
        ({"topologyManagerPolicy": "best-effort"}, {"policy": "BestEffort"}),
        ({"topologyManagerPolicy": "restricted"}, {"policy": "Restricted"}),
        ({"topologyManagerPolicy": "single-numa-node"}, {"policy": "SingleNUMANode"}),
        ({"topologyManagerScope": "container"}, {}),
        ({"topologyManagerScope": "pod"}, {"scope": "Pod"}),
        (
            {"topologyManagerPolicyOptions": {"prefer-closest-numa-nodes": "true"}},
            {"preferClosestNUMANodes": True},
        ),
        (
            {"topologyManagerPolicyOptions": {"max-allowable-numa-nodes": "12"}},
            {},
        ),
    ],
)
def test_the_topology_manager(given: Body, topology: Body) -> None:
    assert spec(**given).get("topology", {}) == topology


@pytest.mark.parametrize(
    ("given", "reserved"),
    [
        ({"reservedSystemCPUs": "0,1,8-9"}, {"cpus": "0-1,8-9"}),
        ({"reservedSystemCPUs": "", "kubeReserved": {"cpu": "500m"}}, {"count": 1}),
        (
            {
                "reservedSystemCPUs": None,
                "kubeReserved": {"cpu": "1500m"},
                "systemReserved": {"cpu": 1},
            },
            {"count": 3},
        ),
        ({"reservedSystemCPUs": "2", "kubeReserved": {"cpu": "4"}}, {"cpus": "2"}),
    ],
)
def test_reserved_cpus(given: Body, reserved: Body) -> None:
    assert spec(**given)["reserved"] == reserved


def test_reserved_memory_of_each_numa_node() -> None:
    listed = [
        {"numaNode": 0, "limits": {"memory": "1Gi", "hugepages-2Mi": "64Mi"}},
        {"numaNode": 1, "limits": {"memory": "100Mi"}},
        {"numaNode": 0, "limits": {"hugepages-1Gi": "1Gi"}},
    ]
    made = translate({**MEMORY, "reservedMemory": listed, "kubeReserved": {"memory": "1Gi"}})
    assert made.spec["memory"] == {
        "policy": "Static",
        "reserved": [
            {"numaNode": 0, "memory": "1Gi", "hugepages": {"2Mi": "64Mi", "1Gi": "1Gi"}},
            {"numaNode": 1, "memory": "100Mi"},
        ],
    }
    assert not any("no kubelet starts" in note for note in made.notes)


@pytest.mark.parametrize(
    ("configuration", "said"),
    [
        ({**STATIC, "cpuManagerReconcilePeriod": "5s"}, "cpuManagerReconcilePeriod: has no count"),
        ({**STATIC, "kubeReserved": {"cpu": 1}}, "kubeReserved.cpu: has no effect beside reserved"),
        (
            {**STATIC, "cpuManagerPolicyOptions": {"new": "true"}},
            "PolicyOptions.new: has no",
        ),
        (
            {**STATIC, "topologyManagerPolicyOptions": {"new": "true"}},
            "topologyManagerPolicyOptions.new: has no counterpart",
        ),
        (
            {**STATIC, "topologyManagerPolicyOptions": {"max-allowable-numa-nodes": "12"}},
            "max-allowable-numa-nodes: is not needed",
        ),
        (
            {**STATIC, "topologyManagerPolicy": "restricted"},
            "topologyManagerPolicy: aligns",
        ),
        ({**STATIC, "featureGates": {"CPUManagerPolicyAlphaOptions": True}}, "numapin has no such"),
        ({**STATIC, "memoryManagerPolicy": "BestEffort"}, "memoryManagerPolicy: BestEffort has no"),
        ({**MEMORY, "memoryManagerPolicy": "None"}, "reservedMemory: has no effect without memory"),
        ({**MEMORY, "reservedMemory": None}, "reservedMemory: is missing, and no kubelet starts"),
        ({**MEMORY, "kubeReserved": {"memory": "1Gi"}}, "is 100 MiB, and kubeReserved, systemRes"),
        ({**MEMORY, "evictionHard": {"memory.available": "1Gi"}}, "keep back 1 GiB: no kubelet"),
        (
            {**MEMORY, "evictionHard": {"nodefs.available": "1%"}},
            "keep back 0 B: no kubelet",
        ),
        ({**MEMORY, "cpuManagerPolicy": "none"}, "memoryManagerPolicy: Static has no counterpart"),
        ({"cpuManagerPolicy": "static"}, "reservedSystemCPUs: and the CPUs of kubeReserved"),
        ({}, "cpuManagerPolicy: none gives no container CPUs of its own: mode None"),
        ({**STATIC, "clusterDNS": [], "address": "::"}, "left to the kubelet: address, clusterDNS"),
    ],
)
def test_what_a_policy_does_not_carry_is_said(configuration: Body, said: str) -> None:
    assert said in notes(configuration)


@pytest.mark.parametrize(
    "configuration",
    [
        MEMORY,
        {**MEMORY, "evictionHard": {"memory.available": "5%"}},
        {**MEMORY, "evictionHard": {"a": "1"}, "mergeDefaultEvictionSettings": True},
    ],
)
def test_a_reservation_of_memory_with_which_the_kubelet_starts(configuration: Body) -> None:
    assert "no kubelet starts" not in notes(configuration)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"cpuManagerPolicy": "Static"}, "cpuManagerPolicy: 'Static' is none of none, static"),
        ({"topologyManagerPolicy": "strict"}, "topologyManagerPolicy: 'strict' is none of"),
        ({"topologyManagerScope": "node"}, "topologyManagerScope: 'node' is none of"),
        ({"memoryManagerPolicy": "static"}, "memoryManagerPolicy: 'static' is none of"),
        ({"reservedSystemCPUs": "0-x"}, "reservedSystemCPUs: "),
        ({"reservedSystemCPUs": "", "kubeReserved": {"cpu": "much"}}, "kubeReserved.cpu: 'much'"),
        ({"cpuManagerPolicyOptions": {"full-pcpus-only": "yes"}}, "full-pcpus-only: 'yes' is not"),
        (
            {"topologyManagerPolicyOptions": {"max-allowable-numa-nodes": "7"}},
            "no number from 8",
        ),
        ({"reservedMemory": [{"numaNode": 0, "limits": {"cpu": "1"}}]}, "is neither memory nor"),
        ({"reservedMemory": [{"limits": {"memory": "?"}}]}, "reservedMemory[0].limits.memory: '?'"),
        ({"reservedMemory": [1]}, "reservedMemory[0]: must be an object"),
        (
            {"reservedMemory": [{"numaNode": 0, "limits": {"memory": "1Gi"}}] * 2},
            "reservedMemory[1].limits.memory: is there twice for this NUMA node",
        ),
        (
            {**MEMORY, "reservedMemory": [{"numaNode": -1, "limits": {"memory": "1Gi"}}]},
            "spec.memory.reserved[0].numaNode",
        ),
        (
            {
                "cpuManagerPolicyOptions": {
                    "full-pcpus-only": "true",
                    "distribute-cpus-across-cores": "true",
                }
            },
            "excludes fullPCPUsOnly; set only one; no kubelet starts with it",
        ),
        (
            {
                "cpuManagerPolicyOptions": {"align-by-socket": "true"},
                "topologyManagerPolicy": "single-numa-node",
            },
            "spec.options.alignBySocket: conflicts with topology.policy SingleNUMANode",
        ),
    ],
)
def test_what_no_kubelet_starts_with_is_refused(given: Body, message: str) -> None:
    with pytest.raises(CommandError) as refused:
        translate({**STATIC, **given})
    assert message in str(refused.value)


def test_a_kubelet_without_static_policy_gives_nothing() -> None:
    assert translate({"kubeReserved": {"cpu": "1"}}).spec == {
        "mode": "None",
        "reserved": {"count": 1},
    }


def test_the_quota_that_a_gate_keeps_is_kept() -> None:
    gate = "DisableCPUQuotaWithExclusiveCPUs"
    assert spec(featureGates={gate: False}) == {"cpuQuota": "Keep"}
    assert spec(featureGates={gate: True}) == {}


def printed(capsys: Capture, *words: str) -> tuple[Body, str]:
    assert main(["migrate", *words]) == 0
    captured = capsys.readouterr()
    policy: Body = yaml.safe_load(captured.out)
    CpuPolicySpec.model_validate(policy["spec"], extra="forbid")
    return policy, captured.err


def test_the_policy_is_printed_for_a_node(tmp_path: Path, capsys: Capture) -> None:
    """The file of kubeadm has other documents; a drop-in has a part of the settings."""
    file, more = tmp_path / "config.yaml", tmp_path / "10-more.conf"
    other = {"kind": "ClusterConfiguration"}
    file.write_text(yaml.safe_dump_all([other, {**KIND, **STATIC, "kubeReserved": {"cpu": 2}}]))
    more.write_text(yaml.safe_dump({**KIND, "reservedSystemCPUs": "0-1"}))
    words = ["--kubelet-config", str(file), "--kubelet-config", str(more), "--node", "worker-1"]
    policy, said = printed(capsys, *words)
    assert policy == {
        "apiVersion": "numapin.io/v1beta1",
        "kind": "CpuPolicy",
        "metadata": {"name": "worker-1"},
        "spec": {
            "nodeSelector": {"kubernetes.io/hostname": "worker-1"},
            "mode": "Static",
            "reserved": {"cpus": "0-1"},
        },
    }
    assert "kubeReserved.cpu: has no effect" in said
    assert "nodeSelector" not in said


def test_the_answer_of_configz_from_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps({"kubeletconfig": STATIC})))
    policy, said = printed(capsys, "--kubelet-config", "-")
    assert policy["spec"] == {"mode": "Static", "reserved": {"cpus": "0"}}
    assert "nodeSelector: is missing, so every node is selected" in said


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kind: Pod", "config.yaml: 0 documents of kind KubeletConfiguration are in it; give"),
        ("a: [", "config.yaml: not YAML"),
        (yaml.safe_dump_all([KIND, KIND]), "2 documents of kind KubeletConfiguration"),
        (yaml.safe_dump({**KIND, "cpuManagerPolicy": "x"}), "config.yaml: cpuManagerPolicy: 'x'"),
    ],
)
def test_bad_files_are_named(tmp_path: Path, capsys: Capture, text: str, message: str) -> None:
    (tmp_path / "config.yaml").write_text(text)
    assert main(["migrate", "--kubelet-config", str(tmp_path / "config.yaml")]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.out == ""
