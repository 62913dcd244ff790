"""`numapin plan` with ResourceSlices: claimed devices have a say in the placement of their pods."""

import json
from pathlib import Path

import pytest

from numapin_api.hardware.machine_file import format_machine
from numapin_cli.main import main
from support.values.placement import machine

POLICY = """\
apiVersion: numapin.io/v1beta1
kind: CpuPolicy
metadata: {name: web}
spec:
  reserved: {cpus: "0"}
  topology: {policy: SingleNUMANode}
"""

OBJECTS = """\
kind: Pod
metadata: {name: a}
spec:
  resourceClaims: [{name: own, resourceClaimName: gpu}]
  containers: [{name: x, resources: {claims: [{name: own}], limits: {cpu: "2", memory: 1Gi}}}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: gpu, namespace: default, uid: u}
status:
  allocation:
    devices: {results: [{request: r, driver: gpu.example, pool: p, device: g}]}
"""

SLICE = """\
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: s}
spec:
  driver: gpu.example
  nodeName: NODE
  pool: {name: p, generation: 1, resourceSliceCount: 1}
  devices: [{name: g, attributes: {resource.kubernetes.io/numaNode: {int: 1}}}]
"""


@pytest.mark.parametrize(
    ("slice_", "cpus"),
    [
        pytest.param(SLICE.replace("NODE", "machine"), "4-5", id="of-the-node"),
        pytest.param(SLICE.replace("NODE", "another"), "2-3", id="of-another-node"),
        pytest.param("", "2-3", id="none"),
    ],
)
def test_resource_slices_say_near_which_numa_nodes_claimed_devices_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], slice_: str, cpus: str
) -> None:
    (tmp_path / "machine.json").write_text(format_machine(machine(8, numa_nodes=2)))
    (tmp_path / "policy.yaml").write_text(POLICY)
    (tmp_path / "pods.yaml").write_text(OBJECTS + slice_)
    words = ["plan", "--machine", str(tmp_path / "machine.json")]
    words += [part for one in ("policy", "pods") for part in ("-f", str(tmp_path / f"{one}.yaml"))]
    assert main([*words, "-o", "json"]) == 0
    [entry] = json.loads(capsys.readouterr().out)["nodes"][0]["spec"]["containers"]
    assert entry["cpus"] == cpus
    assert main(words) == 0
    missed = "no ResourceSlice that is given has its devices" in capsys.readouterr().out
    assert missed is (cpus == "2-3")
