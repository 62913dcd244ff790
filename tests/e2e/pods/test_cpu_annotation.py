"""A container sees by a file which CPUs it has, and the example follows it, on a real kubelet.

The node has two CPUs, one of them reserved: one container can have a CPU of its own.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from numapin_api import names
from numapin_lab.running_lab import RunningLab, eventually, pod, policy

ROOT = Path(__file__).parents[3]
COMPONENT = ROOT / "manifests" / "components" / "cpu-annotation"
FILES = [f"--filename={COMPONENT / name}" for name in ("rbac.yaml", "admission.yaml")]
EXAMPLE = ROOT / "examples" / "follow_cpus.py"

OWN = {"cpus": "1", "numaNodes": "0"}
FOLDER = "/etc/numapin"


@pytest.fixture
def telling(lab: RunningLab) -> Iterator[RunningLab]:
    """The lab with an operator that annotates pods."""
    lab.kubectl("apply", *FILES)
    usual = lab.agent("operator")
    usual.stop()
    other = replace(usual, options=(*usual.options, "--annotate-pods"))
    try:
        other.start()
        other.wait_ready()
        yield lab
    finally:
        other.stop()
        lab.restart("operator")
        lab.kubectl("delete", *FILES)


def with_file(manifest: dict[str, Any]) -> dict[str, Any]:
    """The pod with the volume of docs/notice.md."""
    field = {"fieldPath": f"metadata.annotations['{names.CPUS_ANNOTATION}']"}
    volume = {"name": "cpus", "downwardAPI": {"items": [{"path": "cpus", "fieldRef": field}]}}
    (container,) = manifest["spec"]["containers"]
    container["volumeMounts"] = [{"name": "cpus", "mountPath": FOLDER}]
    return manifest | {"spec": manifest["spec"] | {"volumes": [volume]}}


def resize(lab: RunningLab, name: str, cpu: str) -> None:
    amounts = {"requests": {"cpu": cpu}, "limits": {"cpu": cpu}}
    patch = {"spec": {"containers": [{"name": "main", "resources": amounts}]}}
    lab.kubectl("patch", "pod", name, "--subresource=resize", "-p", json.dumps(patch))


def in_container(lab: RunningLab, name: str) -> Path:
    """The folder of the volume, as the container's process sees it."""
    pid = (lab.container(name) / "cgroup.procs").read_text().split()[0]
    return Path(f"/proc/{pid}/root{FOLDER}")


def announced(file: Path) -> Any:
    """What the file says of the container; None if it is empty."""
    text = file.read_text()
    return json.loads(text)["containers"]["main"] if text else None


def test_the_file_follows_a_resize_and_the_example_the_file(
    telling: RunningLab, tmp_path: Path
) -> None:
    lab, said = telling, tmp_path / "said"
    lab.apply(policy(), with_file(pod("owner", cpu="1")))
    lab.wait_running("owner")
    eventually(lambda: str(lab.allowed("owner")), "1")
    folder = in_container(lab, "owner")
    eventually(lambda: announced(folder / "cpus"), OWN)

    command = [sys.executable, str(EXAMPLE), str(folder / "cpus"), "main", "1"]
    with said.open("w") as out, subprocess.Popen(command, stdout=out) as example:
        try:
            for cpu, wanted, workers in (("1500m", None, [None]), ("1", OWN, [1])):
                resize(lab, "owner", cpu)
                eventually(lambda: announced(folder / "cpus"), wanted)
                eventually(lambda: _last(said)["workers"], workers)
            assert example.poll() is None
        finally:
            example.kill()
    assert str(lab.allowed("owner")) == "1"


def _last(said: Path) -> dict[str, Any]:
    """The last whole line that the example has printed."""
    lines = said.read_text().splitlines(keepends=True)
    whole = [line for line in lines if line.endswith("\n")]
    found: dict[str, Any] = json.loads(whole[-1]) if whole else {"workers": []}
    return found
