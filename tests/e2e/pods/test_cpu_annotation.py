"""A container sees by a file which CPUs it has, and the example follows it, on a real kubelet.

The node has two CPUs, one of them reserved: one container can have a CPU of its own.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from numapin_api.cpuset import CpuSet
from numapin_campaigns.workload.notice import CPUS_FOLDER, annotating, with_cpus_file
from numapin_lab.running_lab import RunningLab, eventually, pod, policy
from support.real.telling.poll_mode import build_poll_mode, poll_mode_pod

EXAMPLE = Path(__file__).parents[3] / "examples" / "follow_cpus.py"

POLLS: dict[str, Any] = {"main": 1, "lcores": [1]}
RESTS: dict[str, Any] = {"main": None, "lcores": []}
OWN = {"cpus": "1", "numaNodes": "0"}

pytestmark = pytest.mark.from_source("the operator has an option that the default overlay lacks")


@pytest.fixture
def telling(lab: RunningLab) -> Iterator[RunningLab]:
    """The lab with an operator that annotates pods."""
    with annotating(lab):
        yield lab


def resize(lab: RunningLab, name: str, cpu: str) -> None:
    amounts = {"requests": {"cpu": cpu}, "limits": {"cpu": cpu}}
    patch = {"spec": {"containers": [{"name": "main", "resources": amounts}]}}
    lab.kubectl("patch", "pod", name, "--subresource=resize", "-p", json.dumps(patch))


def in_container(lab: RunningLab, name: str) -> Path:
    """The folder of the volume, as the container's process sees it."""
    pid = (lab.container(name) / "cgroup.procs").read_text().split()[0]
    return Path(f"/proc/{pid}/root{CPUS_FOLDER}")


def announced(file: Path) -> Any:
    """What the file says of the container; None if it is empty."""
    text = file.read_text()
    return json.loads(text)["containers"]["main"] if text else None


def test_the_file_follows_a_resize_and_the_example_the_file(
    telling: RunningLab, tmp_path: Path
) -> None:
    lab, said = telling, tmp_path / "said"
    lab.apply(policy(), with_cpus_file(pod("owner", cpu="1")))
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


def test_a_poll_mode_program_in_a_pod_begins_and_ends_with_its_cpu(
    telling: RunningLab, tmp_path: Path
) -> None:
    lab, program = telling, build_poll_mode(tmp_path)
    lab.kubectl("create", "configmap", program.name, f"--from-file={program}")
    try:
        lab.apply(policy(), poll_mode_pod("owner", cpu="1"))
        lab.wait_running("owner")
        for cpu, state in ((None, POLLS), ("1500m", RESTS), ("1", POLLS)):
            if cpu is not None:
                resize(lab, "owner", cpu)
            eventually(lambda: _printed(lab, "owner"), state)
        pid = (lab.container("owner") / "cgroup.procs").read_text().split()[0]
        eventually(lambda: _pinned(pid), ["1"])
        (status,) = lab.pod("owner")["status"]["containerStatuses"]
        assert status["restartCount"] == 0
    finally:
        lab.kubectl("delete", "configmap", program.name)


def _printed(lab: RunningLab, name: str) -> Any:
    """The last line of a pod's log; the number of lost CPUs is left out."""
    lines = lab.kubectl("logs", name).splitlines()
    return {key: value for key, value in json.loads(lines[-1]).items() if key != "lost"}


def _pinned(pid: str) -> list[str]:
    """The CPUs that each thread of a process but the first one may use."""
    threads = [int(one.name) for one in Path(f"/proc/{pid}/task").iterdir()]
    return [str(CpuSet(os.sched_getaffinity(one))) for one in threads if one != int(pid)]


def _last(said: Path) -> dict[str, Any]:
    """The last whole line that the example has printed."""
    lines = said.read_text().splitlines(keepends=True)
    whole = [line for line in lines if line.endswith("\n")]
    found: dict[str, Any] = json.loads(whole[-1]) if whole else {"workers": []}
    return found
