"""What the enforcer reports of devices, with the Device Manager of a real kubelet."""

import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from numapin_client.resources import NODE_REPORTS, Key
from numapin_lab.cluster import Cluster
from numapin_lab.devices.devices import Device
from numapin_lab.devices.process import PluginProcess
from numapin_lab.processes.daemons import kill
from numapin_lab.running_lab import RunningLab, pod, policy

GPU = "example.com/gpu"
NEAR, OTHER, ANYWHERE = Device("g0", (0,)), Device("g1", (0,)), Device("g2")
RESOURCES = {("0", 2), ("", 1)}
"""NUMA nodes and number of the healthy devices."""

WITHOUT_OVERRIDE = f"""#!/bin/sh
exec setpriv --bounding-set=-dac_override {sys.executable} "$@"
"""
"""The Python of an enforcer that may open only what the mode of a file lets it."""

pytestmark = pytest.mark.from_source("the device plug-in is a process of the machine")


@pytest.fixture(scope="module")
def plugin(cluster: Cluster) -> Iterator[PluginProcess]:
    """A plug-in of three devices, one of which has no topology."""
    made = PluginProcess(cluster.kubelet, GPU)
    made.start(NEAR, OTHER, ANYWHERE)
    yield made
    made.kill()


@pytest.fixture
def node(
    lab: RunningLab, plugin: PluginProcess, monkeypatch: pytest.MonkeyPatch
) -> Iterator[RunningLab]:
    """A node whose enforcer looks at everything every few seconds; the plug-in is as it was."""
    monkeypatch.setenv("NUMAPIN_RESYNC_SECONDS", "0.5")
    lab.kill("enforcer")
    lab.restart("enforcer")
    lab.apply(policy())
    lab.eventually(lambda: resources(lab), RESOURCES)
    yield lab
    plugin.offer(NEAR, OTHER, ANYWHERE)
    if plugin.daemon.pid() is None:
        plugin.start(NEAR, OTHER, ANYWHERE)
    monkeypatch.undo()
    lab.kill("enforcer")


def devices(lab: RunningLab) -> dict[str, Any]:
    """The field `devices` of the node's report."""
    path = NODE_REPORTS.path(Key(lab.node))
    found = lab.cluster.api.get(path) if lab.cluster.api.exists(path) else {}
    return dict((found.get("status") or {}).get("devices") or {})


def resources(lab: RunningLab) -> set[tuple[str, int]]:
    listed = devices(lab).get("resources", ())
    return {(one["numaNodes"], one["count"]) for one in listed if one["resource"] == GPU}


def given(lab: RunningLab) -> dict[str, tuple[str, list[str]]]:
    """The NUMA nodes and the devices of each pod that has any, by UID."""
    listed = devices(lab).get("containers", ())
    return {one["podUID"]: (one["numaNodes"], one["ids"]) for one in listed}


def message(lab: RunningLab) -> str:
    return str(devices(lab).get("message", ""))


def gpu_pod(name: str, cpu: str = "100m") -> dict[str, Any]:
    made = pod(name, cpu=cpu)
    limits = made["spec"]["containers"][0]["resources"]
    limits["limits"] = limits["requests"] = limits["limits"] | {GPU: "1"}
    return made


def run_gpu_pod(lab: RunningLab, name: str) -> str:
    """Run a pod with one device; returns its UID."""
    lab.apply(gpu_pod(name))
    lab.wait_running(name)
    return str(lab.pod(name)["metadata"]["uid"])


def test_the_device_of_a_pod_is_reported_while_the_pod_is_there(node: RunningLab) -> None:
    node.apply(pod("other", cpu="100m"))
    first, second = run_gpu_pod(node, "first"), run_gpu_pod(node, "second")
    node.eventually(lambda: given(node), {first: ("0", ["g0"]), second: ("0", ["g1"])})
    third = run_gpu_pod(node, "third")
    node.eventually(lambda: given(node).get(third), ("", ["g2"]))
    assert resources(node) == RESOURCES
    assert message(node) == ""

    node.delete("pod", "first")
    node.eventually(lambda: given(node).keys(), {second, third})
    again = run_gpu_pod(node, "first")
    assert again != first
    node.eventually(lambda: given(node).get(again), ("0", ["g0"]))


def test_pods_that_come_together_are_placed_with_their_devices(node: RunningLab) -> None:
    """Their sandboxes are made longer than the operator waits: it knows which pod is which."""
    node.apply(policy(topology={"policy": "BestEffort"}))
    together = [gpu_pod("a", cpu="1"), gpu_pod("b"), pod("c", cpu="100m")]
    node.apply(*together)
    node.wait_running("a", "b", "c")
    uids = {name: node.pod(name)["metadata"]["uid"] for name in "ab"}
    node.eventually(lambda: given(node).keys(), set(uids.values()))
    found = devices(node)
    assert (found["unnamed"], found["unnamedPods"]) == ([], [])
    node.eventually(node.reported_exclusive, [True])
    (told,) = (one["message"] for one in node.events("a") if one["reason"] == "CPUsAssigned")
    assert "chosen without its devices" not in told


def test_a_kubelet_that_starts_again_is_asked_again(node: RunningLab) -> None:
    kept = run_gpu_pod(node, "kept")
    node.eventually(lambda: given(node), {kept: ("0", ["g0"])})
    kubelet = node.cluster.kubelet
    pid = kubelet.daemon.pid()
    assert pid is not None
    kill(pid)
    node.wait(lambda: "Connection refused" in message(node), "the kubelet to be missed")
    assert given(node) == {kept: ("0", ["g0"])}
    assert resources(node) == RESOURCES
    kubelet.start()
    kubelet.wait_ready()
    node.eventually(lambda: message(node), "")
    node.eventually(lambda: resources(node), RESOURCES)
    new = run_gpu_pod(node, "new")
    node.eventually(lambda: given(node), {kept: ("0", ["g0"]), new: ("0", ["g1"])})


def test_a_device_that_fails_and_a_plugin_that_is_gone_are_seen(
    node: RunningLab, plugin: PluginProcess
) -> None:
    kept = run_gpu_pod(node, "kept")
    plugin.offer(Device("g0", (0,), healthy=False), OTHER, ANYWHERE)
    node.eventually(lambda: resources(node), {("0", 1), ("", 1)})
    assert given(node) == {kept: ("0", ["g0"])}
    plugin.kill()
    node.eventually(lambda: resources(node), set())
    assert given(node) == {kept: ("0", ["g0"])}
    plugin.start(NEAR, OTHER, ANYWHERE)
    node.eventually(lambda: resources(node), RESOURCES)
    new = run_gpu_pod(node, "new")
    node.eventually(lambda: given(node), {kept: ("0", ["g0"]), new: ("0", ["g1"])})


@contextmanager
def replaced(path: Path) -> Iterator[None]:
    """Have a socket in place of the kubelet's that accepts and never answers."""
    aside = path.with_suffix(".aside")
    path.rename(aside)
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(path))
        silent.listen()
        yield
    aside.rename(path)


def test_a_silent_kubelet_is_reported_and_what_pods_have_stays(node: RunningLab) -> None:
    kept = run_gpu_pod(node, "kept")
    node.eventually(lambda: given(node), {kept: ("0", ["g0"])})
    path = node.cluster.kubelet.pod_resources_socket
    with replaced(path):
        wanted = f"the kubelet does not list devices on {path}: no answer in 2 s"
        node.eventually(lambda: message(node), wanted)
        assert given(node) == {kept: ("0", ["g0"])}
        assert resources(node) == RESOURCES
        node.kill("enforcer")
        node.restart("enforcer")
        node.eventually(lambda: message(node), wanted)
        assert given(node) == {kept: ("0", ["g0"])}
        late = run_gpu_pod(node, "late")
        node.wait_in_force()
    node.eventually(lambda: given(node), {kept: ("0", ["g0"]), late: ("0", ["g1"])})
    node.eventually(lambda: message(node), "")


def test_a_socket_that_is_closed_to_the_enforcer_is_reported(
    node: RunningLab, tmp_path: Path
) -> None:
    kept = run_gpu_pod(node, "kept")
    node.eventually(lambda: given(node), {kept: ("0", ["g0"])})
    python = tmp_path / "python"
    python.write_text(WITHOUT_OVERRIDE)
    python.chmod(0o755)
    path = node.cluster.kubelet.pod_resources_socket
    before = path.stat().st_mode
    path.chmod(0)
    node.kill("enforcer")
    replace(node.agent("enforcer"), python=str(python)).start()
    node.wait(lambda: message(node).endswith("Permission denied"), "a denial to be reported")
    assert given(node) == {kept: ("0", ["g0"])}
    path.chmod(before)
    node.eventually(lambda: message(node), "")
    assert resources(node) == RESOURCES
