"""What becomes of running pods when policies are edited, deleted, applied again, or join.

On a real kubelet; a sampler reads the effective CPUs of every cgroup each millisecond.
"""

import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from numapin_api.cpuset import CpuSet
from numapin_campaigns.recording.recording import Recording, recording
from numapin_client.resources import NODE_ASSIGNMENTS
from numapin_lab.controlplane.node_objects import read_node
from numapin_lab.running_lab import RunningLab, eventually, pod, policy

OWN, SHARED = CpuSet.parse("1"), CpuSet.parse("0")
EVERYTHING = CpuSet.parse("0-1")
LABEL = "numapin-test/group"


WAITING = ("False", "WaitingForContainers", 1)
IN_FORCE = ("True", "InForce", 0)
EDITS = [
    pytest.param({"reserved": {"cpus": "1"}}, WAITING, id="reserved"),
    pytest.param({"pods": {"qosClasses": ["Burstable"]}}, WAITING, id="pods"),
    pytest.param({"memory": {"policy": "SingleNUMA"}}, WAITING, id="memory"),
    pytest.param({"topology": {"policy": "SingleNUMANode"}}, IN_FORCE, id="topology"),
    pytest.param({"options": {"distributeCPUsAcrossCores": True}}, IN_FORCE, id="options"),
    pytest.param({"placement": {"numaNodes": "Spread"}}, IN_FORCE, id="placement"),
    pytest.param({"cpuQuota": "Keep"}, IN_FORCE, id="cpuQuota"),
    pytest.param({"isolatedCPUs": "ExclusiveOnly"}, IN_FORCE, id="isolatedCPUs"),
    pytest.param({"rollout": {"maxConcurrent": 1}}, IN_FORCE, id="rollout"),
]


def named(body: dict[str, Any], name: str) -> dict[str, Any]:
    return body | {"metadata": {"name": name}}


def ready(lab: RunningLab, name: str = "e2e") -> tuple[str, str, int]:
    """The policy's Ready with its reason, and how many containers are outdated."""
    found = lab.kubectl.get("cpupolicy", name)
    status = found.get("status") or {}
    for one in status.get("conditions", ()):
        newest = one["observedGeneration"] == found["metadata"]["generation"]
        if one["type"] == "Ready" and newest:
            return one["status"], one["reason"], status.get("outdated", 0)
    return "Unknown", "", 0


@pytest.fixture
def pinned(lab: RunningLab) -> Iterator[RunningLab]:
    """A policy, `owner` with CPU 1 to itself, and `neighbour` on the other one."""
    lab.apply(policy(releaseDelay="20s"), pod("owner", cpu="1"), pod("neighbour"))
    lab.wait_running("owner", "neighbour")
    eventually(lab.reported_exclusive, [True])
    eventually(lambda: lab.allowed("neighbour"), SHARED)
    lab.wait_in_force()
    yield lab
    lab.apply(policy(releaseDelay="0s"))
    eventually(lambda: ready(lab), IN_FORCE)


def test_a_kubelet_that_keeps_back_fewer_cpus_than_are_reserved_is_named(lab: RunningLab) -> None:
    """The lab's keeps back none."""
    lab.apply(policy())
    eventually(lambda: ready(lab), IN_FORCE)
    conditions = lab.kubectl.get("cpupolicy", "e2e")["status"]["conditions"]
    (message,) = (one["message"] for one in conditions if one["type"] == "Ready")
    assert f"; 1 node CPUReservationDiffers: {lab.node} (1 CPU reserved, and the Node " in message


@contextmanager
def nothing_moves(lab: RunningLab) -> Iterator[Recording]:
    """Neither pod has other CPUs at any moment."""
    ids = [lab.container_id(name) for name in ("owner", "neighbour")]
    with recording(lab.kubepods) as record:
        yield record
    sets = [[one.cpus for one in record.groups[each]] for each in ids]
    assert sets == [[OWN], [SHARED]]
    assert record.quality["samples"] > 100


@pytest.mark.parametrize(("edit", "then"), EDITS)
def test_an_edit_moves_no_running_container_and_says_what_does_not_fit(
    pinned: RunningLab, edit: dict[str, Any], then: tuple[str, str, int]
) -> None:
    with nothing_moves(pinned):
        pinned.apply(policy(releaseDelay="20s", **edit))
        eventually(lambda: ready(pinned), then)
        pinned.apply(policy(releaseDelay="20s"))
        eventually(lambda: ready(pinned), IN_FORCE)


def test_a_policy_that_returns_finds_every_container_where_it_was(pinned: RunningLab) -> None:
    lab, body = pinned, policy(releaseDelay="20s")
    selecting = body | {"spec": body["spec"] | {"nodeSelector": {LABEL: "one"}}}
    with nothing_moves(lab):
        lab.kubectl("replace", "--force", "-f", "-", text=json.dumps(body))
        eventually(lambda: ready(lab), IN_FORCE)
        lab.delete("cpupolicy", "e2e")
        eventually(lambda: _release_at(lab) is not None, True)
        lab.apply(body)
        eventually(lambda: ready(lab), IN_FORCE)
        assert _release_at(lab) is None
        lab.apply(policy(releaseDelay="20s", mode="None"))
        eventually(lambda: ready(lab)[1], "ReleaseDelayed")
        lab.apply(body)
        eventually(lambda: ready(lab), IN_FORCE)
        lab.kubectl("label", "node", lab.node, f"{LABEL}=one")
        lab.apply(selecting)
        eventually(lambda: ready(lab), IN_FORCE)
        lab.kubectl("label", "node", lab.node, f"{LABEL}-")
        eventually(lambda: _release_at(lab) is not None, True)
        lab.kubectl("label", "node", lab.node, f"{LABEL}=one")
        eventually(lambda: ready(lab), IN_FORCE)
        lab.kubectl("label", "node", lab.node, f"{LABEL}-")
        lab.apply(body)
        eventually(lambda: ready(lab), IN_FORCE)
    lab.apply(policy(releaseDelay="0s"))
    eventually(lambda: ready(lab), IN_FORCE)
    lab.delete("cpupolicy", "e2e")
    eventually(lambda: lab.allowed("owner"), EVERYTHING)


def _release_at(lab: RunningLab) -> str | None:
    assignment = lab.assignment()
    return assignment.spec.release_at if assignment else None


def test_a_canary_takes_its_node_over_and_gives_it_back(pinned: RunningLab) -> None:
    lab = pinned
    selected: dict[str, Any] = {"nodeSelector": {LABEL: "canary"}, "cpuQuota": "Keep"}
    with nothing_moves(lab):
        lab.apply(named(policy(releaseDelay="20s", priority=10, **selected), "canary"))
        eventually(lambda: ready(lab, "canary")[1], "NoNodesSelected")
        lab.kubectl("label", "node", lab.node, f"{LABEL}=canary")
        eventually(lambda: ready(lab, "canary"), IN_FORCE)
        assignment = lab.wait_in_force()
        assert assignment.spec.policy is not None
        assert (assignment.spec.policy.name, assignment.spec.cpu_quota) == ("canary", "Keep")
        lab.kubectl("label", "node", lab.node, f"{LABEL}-")
        eventually(lambda: ready(lab), IN_FORCE)
        lab.delete("cpupolicy", "canary")


@pytest.fixture
def other_node(pinned: RunningLab) -> Iterator[str]:
    """A Node without a machine, whose name comes before the real one's."""
    lab = pinned
    name = f"a-{lab.node}"
    lab.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
    yield name
    lab.kubectl("delete", "node", name)
    # It would stay for five minutes.
    kinds = "nodeassignment,nodereport,nodetopology"
    lab.kubectl("delete", kinds, name, "--ignore-not-found")


def _report(lab: RunningLab, node: str) -> None:
    """Say for an older enforcer that is not there that everything is in force."""
    found = read_node(lab.cluster.api, lab.node)
    assert found is not None
    real = found["status"]
    found = lab.kubectl.get("nodeassignment", node)
    generation = found["metadata"]["generation"]
    conditions = [one | {"observedGeneration": generation} for one in real["conditions"]]
    status = {"observedGeneration": generation, "topology": real["topology"], "running": []}
    patch = json.dumps({"status": status | {"conditions": conditions}})
    options = ("--subresource=status", "--type=merge", "-p", patch)
    lab.kubectl("patch", "nodeassignment", node, *options)


def _quotas(lab: RunningLab) -> dict[str, str]:
    listed = lab.cluster.api.get(NODE_ASSIGNMENTS.collection_path())["items"]
    return {one["metadata"]["name"]: one["spec"]["cpuQuota"] for one in listed}


def test_an_edit_reaches_one_node_after_the_other(pinned: RunningLab, other_node: str) -> None:
    lab = pinned
    eventually(lambda: other_node in _quotas(lab), True)
    _report(lab, other_node)
    eventually(
        lambda: bool(lab.kubectl.get("nodeassignment", other_node)["spec"].get("pools")), True
    )
    _report(lab, other_node)
    slow: dict[str, Any] = {"rollout": {"maxConcurrent": 1}, "releaseDelay": "0s"}
    lab.apply(policy(**slow))
    eventually(lambda: _settled(lab, other_node), IN_FORCE)
    with nothing_moves(lab):
        lab.apply(policy(**slow, cpuQuota="Keep"))
        eventually(lambda: sorted(_quotas(lab).values()), ["Keep", "Unlimited"])
        if _quotas(lab)[other_node] == "Keep":
            eventually(lambda: ready(lab)[0], "False")
            time.sleep(2)
            assert _quotas(lab)[lab.node] == "Unlimited", "the other node has not answered yet"
            _report(lab, other_node)
        eventually(lambda: set(_quotas(lab).values()), {"Keep"})
        eventually(lambda: _settled(lab, other_node), IN_FORCE)


def _settled(lab: RunningLab, other: str) -> tuple[str, str, int]:
    _report(lab, other)
    return ready(lab)


@pytest.mark.from_source("numapin's own requests leave room for one whole CPU of two")
def test_a_pod_waits_for_an_ending_one_and_is_told(lab: RunningLab) -> None:
    stubborn = ("sh", "-c", "trap '' TERM; while true; do sleep 1; done")
    ending = pod("ending", stubborn, cpu="1")
    ending["spec"]["terminationGracePeriodSeconds"] = 600
    lab.apply(policy(), ending)
    lab.wait_running("ending")
    eventually(lab.reported_exclusive, [True])
    lab.kubectl("delete", "pod", "ending", "--wait=false")
    lab.apply(pod("waiting", cpu="1"))
    lab.wait_running("waiting")
    with recording(lab.kubepods) as record:
        eventually(lambda: _reasons(lab, "waiting"), {"WaitingForEndingPods"})
        assert lab.allowed("waiting") == SHARED
        assert lab.wait_in_force().spec.refused == ()
        first, second = lab.container_id("ending"), lab.container_id("waiting")
        for pid in (lab.container("ending") / "cgroup.procs").read_text().split():
            with suppress(ProcessLookupError):  # a sleep of a second may have ended
                os.kill(int(pid), signal.SIGKILL)
        eventually(lambda: lab.allowed("waiting"), OWN)
        eventually(lambda: "CPUsAssigned" in _reasons(lab, "waiting"), True)
    assert {one.cpus for one in record.groups[first] if one.runs} == {OWN}
    assert [one.cpus for one in record.groups[second]] == [SHARED, OWN]


def _reasons(lab: RunningLab, name: str) -> set[str]:
    ours = {"WaitingForEndingPods", "CPUsAssigned", "NotEnoughCPUs"}
    return {one["reason"] for one in lab.events(name)} & ours


def test_another_program_that_keeps_writing_is_named(pinned: RunningLab) -> None:
    lab, done = pinned, threading.Event()
    cpus = lab.container("owner") / "cpuset.cpus"

    def fight() -> None:
        while not done.wait(0.2):
            cpus.write_text("0")

    def named_in_ready() -> bool:
        assignment = lab.assignment()
        assert assignment is not None
        assert assignment.status is not None
        return any(
            one.type == "Ready" and "another program writes to cgroups" in one.message
            for one in assignment.status.conditions
        )

    thread = threading.Thread(target=fight)
    thread.start()
    try:
        eventually(named_in_ready, True)
    finally:
        done.set()
        thread.join()
    eventually(lambda: lab.allowed("owner"), OWN)
    eventually(lab.reported_exclusive, [True])
