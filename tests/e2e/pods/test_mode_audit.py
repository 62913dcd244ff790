"""Mode Audit on a real kubelet: nothing is written, and what is planned is what Static does."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from numapin_api.cpuset import CpuSet
from numapin_campaigns.recording.recording import recording
from numapin_lab.node.cgroups import below
from numapin_lab.running_lab import RunningLab, eventually, pod, policy
from support.suite.left_out import rounds

pytestmark = pytest.mark.from_source("pods of numapin leave the node's CPUs no room for two pods")

EVERYTHING = CpuSet.parse("0-1")
FITTING = (("1", "1", None, None), ("1", "500m", "250m", None), ("2", None, None, None))
"""CPUs of pods that the scheduler binds to a node with two."""
FILES = ("cpuset.*", "cpu.cfs_quota_us", "cpu.max")


def files(lab: RunningLab) -> dict[str, str]:
    """What each file of each pod's cgroup says that numapin writes in other modes."""
    folders = [one / "kubepods" for one in lab.cluster.runtime.cgroup.folders()]
    found = (each for folder in folders for each in (folder, *below(folder)))
    return {str(file): _read(file) for each in found for name in FILES for file in each.glob(name)}


def _read(file: Path) -> str:
    try:
        return file.read_text()
    except OSError as error:
        return str(error)


def random_pods(choose: random.Random, number: int) -> list[dict[str, Any]]:
    """Pods that fit beside each other, of which some would be refused: one CPU is to be had."""
    amounts = choose.choice(FITTING)
    named = enumerate(choose.sample(amounts, len(amounts)))
    return [pod(f"random-{number}-{each}", cpu=amount) for each, amount in named]


def planned(lab: RunningLab) -> tuple[list[str], list[str]]:
    """The pods that have CPUs by the plan, with these, and those that it refuses."""
    assignment = lab.assignment()
    if assignment is None:
        return [], []
    given = (f"{one.pod} {one.cpus}" for one in assignment.spec.containers)
    return sorted(given), sorted(one.pod for one in assignment.spec.refused)


def wanted(pods: Sequence[dict[str, Any]]) -> tuple[int, int]:
    """How many pods get CPUs, and how many are refused, if all run at once."""
    whole = [int(amount) for one in pods if (amount := _cpu(one)) is not None and amount.isdigit()]
    given = min(1, whole.count(1))
    return given, len(whole) - given


def _cpu(body: dict[str, Any]) -> str | None:
    resources = body["spec"]["containers"][0].get("resources", {})
    found: str | None = resources.get("limits", {}).get("cpu")
    return found


def test_pods_that_run_are_planned_and_nothing_is_written(lab: RunningLab) -> None:
    lab.apply(pod("owner", cpu="1"), pod("neighbour"), pod("second", cpu="1"))
    lab.wait_running("owner", "neighbour", "second")
    before = files(lab)
    with recording(lab.kubepods) as record:
        lab.apply(policy(mode="Audit"))
        eventually(lambda: planned(lab), (["owner 1"], ["second"]))
        lab.wait_in_force()
        assert files(lab) == before
    assert {str(one.cpus) for group in record.groups.values() for one in group} == {"0-1"}
    assert "CPUsAssigned" not in {one["reason"] for one in lab.events("owner")}
    lab.apply(policy(mode="Static"))
    eventually(lab.reported_exclusive, [True])
    assert planned(lab) == (["owner 1"], ["second"])
    assert lab.allowed("owner") == CpuSet.parse("1")
    lab.apply(policy(mode="Audit"))
    eventually(lambda: lab.allowed("owner"), EVERYTHING)


def test_random_pods_start_as_without_numapin_and_are_planned(lab: RunningLab) -> None:
    choose = random.Random(20)
    lab.apply(policy(mode="Audit"))
    lab.wait_in_force()
    for number in range(rounds(3, before_release=200 // 4)):
        pods = random_pods(choose, number)
        names = [one["metadata"]["name"] for one in pods]
        with recording(lab.kubepods) as record:
            lab.apply(*pods)
            lab.wait_running(*names)
            eventually(lambda: tuple(map(len, planned(lab))), wanted(pods))
        # On cgroup v1 one that was just made has none yet.
        sets = {str(one.cpus) for group in record.groups.values() for one in group if one.cpus}
        assert sets == {"0-1"}, (number, sets)
        lab.delete("pod", *names)
        eventually(lambda: planned(lab), ([], []))
