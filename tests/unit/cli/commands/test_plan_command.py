"""`numapin plan`: a table and a drawing for people, JSON for programs, errors with their place."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from numapin_cli.main import main

MACHINE = {
    "cpus": [[cpu, cpu % 4, 0, -1, 0] for cpu in range(8)],
    "numaNodes": [{"id": 0, "memoryBytes": 8 << 30}],
}

POLICY = """\
apiVersion: numapin.io/v1beta1
kind: CpuPolicy
metadata: {name: web}
spec:
  reserved: {cpus: "0"}
  options: {fullPCPUsOnly: true}
  memory: {policy: Static}
  pods: {podSelector: {matchLabels: {pin: "yes"}}}
"""

PODS = """\
apiVersion: v1
kind: Pod
metadata: {name: first, namespace: web, labels: {pin: "yes"}}
spec:
  containers:
  - {name: db, resources: {limits: {cpu: 2, memory: 1Gi}}}
  - {name: log, resources: {limits: {cpu: 500m, memory: 64Mi}}}
---
kind: PodList
items:
- metadata: {name: odd, labels: {pin: "yes"}}
  spec: {containers: [{name: x, resources: {limits: {cpu: "3", memory: 1Gi}}}]}
- metadata: {name: other}
  spec: {containers: [{name: x, resources: {limits: {cpu: "2", memory: 1Gi}}}]}
"""

CLAIMING = """\
kind: Pod
metadata: {name: a, labels: {pin: "yes"}}
spec:
  resourceClaims: [{name: own, resourceClaimName: own-cpus}]
  containers:
  - {name: x, resources: {claims: [{name: own}], limits: {cpu: "2", memory: 1Gi}}}
  - {name: y, resources: {limits: {cpu: "1", memory: 1Gi}}}
"""

CLAIM = """\
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: own-cpus, namespace: default, uid: u}
status: {allocation: {devices: {results: [{request: r, driver: DRIVER}]}}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "machine.json").write_text(json.dumps(MACHINE))
    (tmp_path / "policy.yaml").write_text(POLICY)
    (tmp_path / "pods.yaml").write_text(PODS)
    return tmp_path


def plan(folder: Path, *more: str, files: tuple[str, ...] = ("policy.yaml", "pods.yaml")) -> int:
    flags = [part for file in files for part in ("-f", str(folder / file))]
    return main(["plan", *flags, "--machine", str(folder / "machine.json"), *more])


def test_text_shows_allocations_refusals_and_the_machine(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert plan(folder) == 0
    drawn = capsys.readouterr().out
    assert "\x1b[" not in drawn, "no colours off a terminal"
    rows = [line.split() for line in drawn.splitlines()]
    assert ["A", "web/first", "db", "1,5", "0", "1", "GiB"] in rows
    assert ["web/first", "log", "shared", "0", "64", "MiB"] in rows
    assert ["default/odd", "x", "shared,", "refused"] in rows
    assert ["default/other", "x", "shared"] in rows
    assert "SMTAlignmentError" in drawn
    assert "no multiple of the 2 threads" in " ".join(drawn.split())
    assert ["r", "reserved", "0"] in rows
    assert "[0,4]r. [1,5]AA [2,6].. [3,7].." in drawn


def test_json_is_the_spec_of_the_assignment(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert plan(folder, "-o", "json") == 0
    (node,) = json.loads(capsys.readouterr().out)["nodes"]
    assert (node["policy"], node["write"], node["reason"]) == ("web", "create", "InForce")
    spec = node["spec"]
    assert [(e["pod"], e["container"], e["cpus"]) for e in spec["containers"]] == [
        ("first", "db", "1,5"),
        ("first", "log", ""),
    ]
    assert spec["pools"] == {"reserved": "0", "shared": "0,2-4,6-7"}
    assert [each["reason"] for each in spec["refused"]] == ["SMTAlignmentError"]


def test_pods_come_from_standard_input_in_the_order_bound(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def bound(name: str, node: str, when: str) -> dict[str, Any]:
        amounts = {"cpu": "2", "memory": "1Gi"}
        condition = {"type": "PodScheduled", "status": "True", "lastTransitionTime": when}
        return {
            "kind": "Pod",
            "metadata": {"name": name, "uid": name, "labels": {"pin": "yes"}},
            "spec": {
                "nodeName": node,
                "containers": [{"name": "c", "resources": {"limits": amounts}}],
            },
            "status": {"conditions": [condition]},
        }

    items = [bound("late", "n1", "2026-02"), bound("early", "n1", "2026-01"), bound("x", "n2", "")]
    listed = json.dumps({"kind": "List", "items": items})
    monkeypatch.setattr("sys.stdin", io.StringIO(listed))
    machine = ["--machine", str(folder / "machine.json")]
    policy = ["-f", str(folder / "policy.yaml"), "-f", "-"]
    assert main(["plan", *policy, *machine, "--node", "n1", "-o", "json"]) == 0
    spec = json.loads(capsys.readouterr().out)["nodes"][0]["spec"]
    assert [(e["pod"], e["cpus"]) for e in spec["containers"]] == [
        ("early", "1,5"),
        ("late", "2,6"),
    ]
    monkeypatch.setattr("sys.stdin", io.StringIO(listed))
    assert main(["plan", *policy, *machine]) == 1
    assert "bound to nodes n1, n2; choose with --node" in capsys.readouterr().err
    monkeypatch.setattr("sys.stdin", io.StringIO(listed))
    assert main(["plan", *policy, *machine, "--node", "n3"]) == 1
    assert "--node n3: no pod is bound to it" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("policy.yaml", "a: [", "policy.yaml: not YAML: "),
        ("policy.yaml", "a: 2026-13-01", "policy.yaml: document 1: kind: is missing"),
        (
            "policy.yaml",
            "[]",
            "document 1: must be an object with apiVersion and kind",
        ),
        ("policy.yaml", "{}", "policy.yaml: document 1: kind: is missing"),
        ("policy.yaml", "", "policy.yaml: there is no object in it; give CpuPolicies, Pods, "),
        ("policy.yaml", "kind: List", "one CpuPolicy is needed, 0 are there; add one with -f"),
        ("pods.yaml", POLICY.replace(": web", ": x"), "one CpuPolicy is needed, 2 are there ("),
        ("pods.yaml", POLICY, "document 1: CpuPolicy web is listed twice, first in "),
        (
            "policy.yaml",
            POLICY.replace("v1beta1", "v1"),
            "apiVersion: must be numapin.io/v1beta1",
        ),
        (
            "policy.yaml",
            POLICY.replace("fullPCPUsOnly", "fullCores"),
            "policy.yaml: document 1: spec.options.fullCores: there is no such field",
        ),
        (
            "policy.yaml",
            POLICY.replace('"0"', '"9"'),
            "policy web on this machine: reserved.cpus: this machine has no online CPU 9",
        ),
        (
            "pods.yaml",
            PODS.replace("500m", "half"),
            "pods.yaml: document 1: pod first: spec.containers[1].resources.limits.cpu: 'half'",
        ),
        (
            "pods.yaml",
            PODS.replace('"3"', "[3]"),
            "pods.yaml: document 2: items[0]: pod odd: spec.containers[0].resources.limits.cpu",
        ),
        (
            "pods.yaml",
            CLAIMING,
            "pods.yaml: document 1: pod a uses ResourceClaim own-cpus, which is not given; add it "
            "(kubectl get resourceclaims -A -o yaml)",
        ),
        ("pods.yaml", "kind: ResourceClaim", "metadata.name: is missing; name the ResourceClaim"),
        ("pods.yaml", "kind: Deployment", "metadata.name: is missing; name the Deployment"),
        ("pods.yaml", "kind: List\nitems: 1", "document 1: items: must be a list of objects"),
        ("pods.yaml", f"{PODS}---\n{PODS}", "pods.yaml: document 3: Pod web/first is listed twice"),
        ("machine.json", "{}", "machine.json: cpus: is missing"),
    ],
)
def test_bad_files_are_named_with_document_and_field(
    folder: Path, capsys: pytest.CaptureFixture[str], name: str, text: str, message: str
) -> None:
    (folder / name).write_text(text)
    assert plan(folder) == 1
    assert message in capsys.readouterr().err


def test_a_policy_without_a_name_is_planned_too(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "policy.yaml").write_text(POLICY.replace("metadata: {name: web}", "metadata: []"))
    assert plan(folder) == 0
    assert "web/first" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("claim", "pinned"),
    [
        pytest.param(CLAIM.replace("DRIVER", "dra.cpu"), ["y"], id="for-cpus"),
        pytest.param(CLAIM.replace("DRIVER", "gpu.example"), ["x", "y"], id="for-another-device"),
        pytest.param(CLAIM.partition("status")[0], [], id="not-allocated"),
    ],
)
def test_resource_claims_say_which_containers_a_dra_driver_serves(
    folder: Path, capsys: pytest.CaptureFixture[str], claim: str, pinned: list[str]
) -> None:
    (folder / "policy.yaml").write_text(POLICY.replace("options: {fullPCPUsOnly: true}", ""))
    (folder / "pods.yaml").write_text(CLAIMING + claim)
    assert plan(folder, "-o", "json") == 0
    spec = json.loads(capsys.readouterr().out)["nodes"][0]["spec"]
    assert [one["container"] for one in spec.get("containers", ())] == pinned


def test_files_that_are_not_there_are_named(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert plan(folder, files=("none.yaml",)) == 1
    assert "none.yaml: No such file or directory; give a YAML file" in capsys.readouterr().err
    (folder / "machine.json").unlink()
    assert plan(folder) == 1
    assert "machine.json: No such file or directory; see --machine" in capsys.readouterr().err


SHARING = """\
kind: PodList
items:
- metadata: {name: no-limit, labels: {pin: "yes"}}
  spec: {containers: [{name: x, resources: {requests: {cpu: 2, memory: 1Gi}, limits: {cpu: 2}}}]}
- metadata: {name: half, labels: {pin: "yes"}}
  spec: {containers: [{name: x, resources: {limits: {cpu: 1500m, memory: 1Gi}}}]}
- metadata: {name: bare-init, labels: {pin: "yes"}}
  spec:
    initContainers: [{name: install}]
    containers: [{name: x, resources: {limits: {cpu: 2, memory: 1Gi}}}]
- metadata: {name: above, labels: {pin: "yes"}}
  spec: {containers: [{name: x, resources: {requests: {cpu: 1}, limits: {cpu: 2, memory: 1Gi}}}]}
- metadata: {name: not-selected}
  spec: {containers: [{name: x, resources: {limits: {cpu: 2, memory: 1Gi}}}]}
- metadata: {name: partly, labels: {pin: "yes"}}
  spec:
    containers:
    - {name: x, resources: {limits: {cpu: 2, memory: 1Gi}}}
    - {name: log, resources: {limits: {cpu: 100m, memory: 1Gi}}}
- metadata: {name: refused, labels: {pin: "yes"}}
  spec: {containers: [{name: x, resources: {limits: {cpu: 40, memory: 1Gi}}}]}
- metadata: {name: placed, labels: {pin: "yes"}}
  spec: {containers: [{name: x, resources: {limits: {cpu: 2, memory: 1Gi}}}]}
"""

CLASS = "its QoS class is Burstable, and pods.qosClasses of policy web is Guaranteed"

SHARED = {
    "default/no-limit": [CLASS, "container x: it has no limit of memory"],
    "default/half": ["container x: it requests 1.5 CPUs, no whole number"],
    "default/bare-init": [
        CLASS,
        "container install: it requests no CPU",
        "container install: it requests no memory",
    ],
    "default/above": [CLASS, "container x: its limit of CPU is not its request"],
    "default/not-selected": [
        "policy web does not select it: pods.podSelector selects pods by their labels"
    ],
    "default/partly": ["container log: it requests 0.1 CPUs, no whole number"],
}


def test_a_pod_that_shares_says_why(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In JSON and in text; a refused pod has its message, and a placed one needs none."""
    (folder / "pods.yaml").write_text(SHARING)
    assert plan(folder, "-o", "json") == 0
    (node,) = json.loads(capsys.readouterr().out)["nodes"]
    assert {one["pod"]: one["why"] for one in node["shared"]} == SHARED
    assert plan(folder) == 0
    drawn = " ".join(capsys.readouterr().out.split())
    assert "Why containers share CPUs" in drawn
