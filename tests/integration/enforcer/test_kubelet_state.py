"""A kubelet with the static CPU manager policy, found by its checkpoint."""

import asyncio
import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from numapin_enforcer.node.kubelet_checkpoint import checkpoint_replaced, static_policy_conflict
from numapin_lab.node.played_kubelet import Kubelet, Pod
from support.real.enforcer_node import Node, assigned, spec
from support.real.kernel_cgroups import cpus_of, limit_of, write_cpus, write_limit
from support.real.waiting import PATIENCE_SECONDS, eventually

NONE, STATIC = '{"policyName":"none"}', '{"policyName":"static"}'


@pytest.fixture
def mounted(root: None, tmp_path: Path) -> Iterator[tuple[Path, Path]]:
    """The kubelet's folder, and the pod's, which has only the mounted file."""
    host, pod = tmp_path / "host", tmp_path / "pod"
    for folder in (host, pod):
        folder.mkdir()
        (folder / "cpu_manager_state").write_text(NONE)
    target = pod / "cpu_manager_state"
    subprocess.run(["mount", "--bind", host / "cpu_manager_state", target], check=True)
    yield host, pod
    subprocess.run(["umount", target], check=True)


def test_a_replaced_checkpoint_needs_a_restart(mounted: tuple[Path, Path]) -> None:
    host, pod = mounted
    assert checkpoint_replaced(pod) == ""
    (host / "new").write_text(STATIC)
    (host / "new").replace(host / "cpu_manager_state")
    assert static_policy_conflict(host)
    assert static_policy_conflict(pod) == ""
    assert "only a restart shows the new one" in checkpoint_replaced(pod)
    assert checkpoint_replaced(host) == ""


async def test_a_standby_ends_when_the_checkpoint_was_replaced(
    node: Node, mounted: tuple[Path, Path]
) -> None:
    host, pod = mounted
    standby = await node.stand_by(**{"kubelet-state-dir": str(pod)})
    standby.send_signal(signal.SIGALRM)  # as its timer does once a minute
    await asyncio.sleep(0.5)
    assert standby.poll() is None
    (host / "new").write_text(STATIC)
    (host / "new").replace(host / "cpu_manager_state")
    standby.send_signal(signal.SIGALRM)
    assert await asyncio.to_thread(standby.wait, PATIENCE_SECONDS) == 1
    assert "only a restart shows the new one" in node.standby_log


def test_a_kubelet_without_a_checkpoint_needs_no_restart(tmp_path: Path) -> None:
    assert checkpoint_replaced(tmp_path) == ""


def _kubelet_policy(node: Node, policy: str) -> None:
    """Write the checkpoint of the kubelet's CPU manager."""
    folder = Path(node.options["kubelet-state-dir"])
    folder.mkdir(exist_ok=True)
    text = json.dumps({"policyName": policy, "defaultCpuSet": "0-1"})
    (folder / "cpu_manager_state").write_text(text)


async def test_nothing_is_reverted_while_the_kubelet_has_the_static_policy(
    node: Node, exclusive: tuple[Pod, str]
) -> None:
    _, cgroup = exclusive
    _kubelet_policy(node, "static")
    await eventually(lambda: node.condition("Stalled")[1] == "KubeletStaticPolicy")
    write_cpus(cgroup, "0-1")
    _kubelet_policy(node, "none")
    await eventually(node.in_force)
    assert cpus_of(cgroup) == "1"
    assert node.status["driftCount"] == 0


async def test_without_a_policy_the_log_says_what_to_do_about_a_static_kubelet(node: Node) -> None:
    """There is no NodeAssignment yet, and the enforcer is not ready."""
    _kubelet_policy(node, "static")
    await node.start()
    await eventually(lambda: "set cpuManagerPolicy to none" in "".join(node.log.splitlines()[-1:]))


async def test_quotas_and_runtime_are_left_alone_too(node: Node, kubelet: Kubelet) -> None:
    """While the kubelet has the static policy, from the enforcer's start to its end."""
    pod = await kubelet.run_pod("exclusive")
    write_limit(pod.cgroup, 150_000)
    container_id = await kubelet.run(pod, "main", quota_us=100_000)
    cgroup = f"{pod.cgroup}/{container_id}"
    _kubelet_policy(node, "static")
    await node.start()
    node.assign(spec(assigned(pod.uid, "main", "1"), shared="0"))
    await eventually(lambda: node.condition("Stalled")[1] == "KubeletStaticPolicy")
    await asyncio.sleep(2.5)  # a slow pass and more
    assert (cpus_of(cgroup), cpus_of(pod.cgroup)) == ("0-1", "0-1")
    assert (limit_of(cgroup), limit_of(pod.cgroup)) == ("100000", "150000")
    assert await kubelet.remembered(container_id) == ""
    _kubelet_policy(node, "none")
    await eventually(node.in_force)
    await eventually(lambda: (limit_of(cgroup), limit_of(pod.cgroup)) == ("-1", "-1"))
    _kubelet_policy(node, "static")
    await eventually(lambda: node.condition("Stalled")[1] == "KubeletStaticPolicy")
    write_limit(cgroup, 50_000)
    node.assign(spec(assigned(pod.uid, "main", "0"), shared="1", reserved="1"))
    await eventually(lambda: node.condition("Stalled")[1] == "KubeletStaticPolicy")
    await asyncio.sleep(2.5)
    assert (cpus_of(cgroup), limit_of(cgroup), limit_of(pod.cgroup)) == ("1", "50000", "-1")
