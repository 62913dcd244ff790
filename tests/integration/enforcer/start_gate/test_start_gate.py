"""The start gate on a real kernel, containerd and API server: with which CPUs containers begin."""

import asyncio
import signal
import time
import uuid
from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest

from numapin_lab.node.played_kubelet import FIRST_ACT, Kubelet, Pod
from numapin_lab.processes.daemons import stop
from support.real.enforcer_node import Node, assigned, spec
from support.real.kernel_cgroups import cpus_of
from support.real.waiting import PATIENCE_SECONDS, eventually

GATE: Mapping[str, Any] = {"timeoutMilliseconds": 1000, "qosClasses": ["Guaranteed"]}
OWN, ALL_OTHERS = "Cpus_allowed_list:\t1", "Cpus_allowed_list:\t0"
DELAYED_SECONDS = 0.5


def gated(*containers: Mapping[str, Any], shared: str = "0-1", **more: Any) -> dict[str, Any]:
    return spec(*containers, shared=shared, startGate=GATE, **more)


@pytest.fixture
async def gate(node: Node, kubelet: Kubelet) -> Node:
    """The node, whose runtime asks its enforcer."""
    await node.start(**{"nri-socket": str(kubelet.runtime.nri_socket)})
    node.assign(gated())
    await eventually(lambda: gate_of(node).get("active"), "the gate to be active")
    return node


def gate_of(node: Node) -> dict[str, Any]:
    found: dict[str, Any] = node.status.get("startGate") or {}
    return found


async def said(kubelet: Kubelet, pod: Pod) -> str:
    """What a container's program says first of its CPUs."""
    text: str = await eventually(partial(kubelet.output, pod, "main"))
    return text


async def test_containers_begin_on_their_cpus_although_the_operator_is_late(
    gate: Node, kubelet: Kubelet
) -> None:
    for count in range(1, 11):
        pod = await kubelet.run_pod("late", uid=str(uuid.uuid4()))
        running = asyncio.create_task(kubelet.run(pod, "main", FIRST_ACT))
        await asyncio.sleep(DELAYED_SECONDS)
        assert not running.done()
        gate.assign(gated(assigned(pod.uid, "main", "1"), shared="0"))
        await running
        assert await said(kubelet, pod) == OWN
        counted = f'numapin_container_starts_total{{began="Pinned"}} {count}'
        await eventually(lambda text=counted: text in gate.probe("metrics")[1])  # type: ignore[misc]
        found = await eventually(lambda: gate_of(gate).get("bornPinned") and gate_of(gate))
        assert (found["bornPinned"], found.get("bornShared") or []) == (1, [])
        await kubelet.remove_pod(pod)
        gate.assign(gated())
        await eventually(lambda: not gate_of(gate).get("bornPinned"), "the pod to be gone")


async def test_a_container_starts_without_its_cpus_when_the_operator_is_too_late(
    gate: Node, kubelet: Kubelet
) -> None:
    pod = await kubelet.run_pod("too-late")
    began = time.monotonic()
    id_ = await kubelet.run(pod, "main", FIRST_ACT)
    assert time.monotonic() - began >= GATE["timeoutMilliseconds"] / 1000
    assert await said(kubelet, pod) == "Cpus_allowed_list:\t0-1"
    assert gate.condition("Ready")[:2] == ("True", "StartGateOpen")
    began = time.monotonic()
    other = await kubelet.run_pod("next")
    await kubelet.run(other, "main", FIRST_ACT)
    assert gate_of(gate)["message"].startswith("a container waited in vain")
    status = await gate.applied(gated(assigned(pod.uid, "main", "1"), shared="0"))
    await eventually(gate.reports_exclusive, "the container to be pinned late")
    assert cpus_of(f"{pod.cgroup}/{id_}") == "1"
    found = gate_of(gate)
    assert (found["bornPinned"], found["bornShared"]) == (0, [f"{pod.uid}/main"])
    assert "message" not in found
    assert status["startGate"]["active"]


async def test_a_pod_that_gets_nothing_waits_no_longer(gate: Node, kubelet: Kubelet) -> None:
    pod = await kubelet.run_pod("refused")
    running = asyncio.create_task(kubelet.run(pod, "main", FIRST_ACT))
    await asyncio.sleep(DELAYED_SECONDS / 2)
    assert not running.done()
    gate.assign(gated(unassigned=[pod.uid]))
    await running
    assert await said(kubelet, pod) == "Cpus_allowed_list:\t0-1"
    assert gate_of(gate).get("message") is None


async def test_others_do_not_wait(gate: Node, kubelet: Kubelet) -> None:
    await gate.applied(gated(assigned(str(uuid.uuid4()), "main", "1"), shared="0"))
    for qos in ("burstable", "besteffort"):
        pod = await kubelet.run_pod("other", qos)
        await kubelet.run(pod, "main", FIRST_ACT)
        assert await said(kubelet, pod) == ALL_OTHERS
    assert gate_of(gate).get("message") is None


async def test_a_killed_enforcer_holds_nothing_and_its_successor_knows_what_began_pinned(
    gate: Node, kubelet: Kubelet
) -> None:
    first = await kubelet.run_pod("first")
    await gate.applied(gated(assigned(first.uid, "main", "1"), shared="0"))
    await kubelet.run(first, "main", FIRST_ACT)
    assert await said(kubelet, first) == OWN
    waiting = await kubelet.run_pod("waiting")
    running = asyncio.create_task(kubelet.run(waiting, "main", FIRST_ACT))
    await asyncio.sleep(DELAYED_SECONDS / 2)
    assert not running.done()
    await gate.stop(signal.SIGKILL)
    await running
    assert await said(kubelet, waiting) == ALL_OTHERS
    await gate.start(**{"nri-socket": str(kubelet.runtime.nri_socket)})
    await eventually(lambda: gate_of(gate).get("bornPinned") == 1, "the successor's report")
    later = await kubelet.run_pod("later")
    gate.assign(gated(unassigned=[waiting.uid, later.uid], shared="0-1"))
    await kubelet.run(later, "main", FIRST_ACT)


async def test_without_a_socket_all_is_as_without_the_gate(node: Node, kubelet: Kubelet) -> None:
    await node.start(**{"nri-socket": str(node.folder / "none.sock")})
    pod = await kubelet.run_pod("as-before")
    await node.applied(gated(assigned(pod.uid, "main", "1"), shared="0"))
    await kubelet.run(pod, "main", FIRST_ACT)
    assert await said(kubelet, pod) == OWN
    await eventually(lambda: gate_of(node).get("message"), "the gate to be reported")
    found = gate_of(node)
    assert not found["active"]
    assert "no NRI socket" in found["message"]
    assert node.condition("Ready")[:2] == ("True", "StartGateOpen")
    assert found["bornShared"] == [f"{pod.uid}/main"]


async def test_a_runtime_that_starts_again_asks_again(gate: Node, kubelet: Kubelet) -> None:
    runtime = kubelet.runtime
    pid = runtime.daemon.pid()
    assert pid is not None
    await asyncio.to_thread(stop, pid, PATIENCE_SECONDS)
    await eventually(lambda: gate_of(gate).get("active") is False, "the gate to be open")
    await asyncio.to_thread(runtime.start)
    await eventually(lambda: gate_of(gate).get("active"), "the runtime to ask again")
    pod = await kubelet.run_pod("after")
    await gate.applied(gated(assigned(pod.uid, "main", "1"), shared="0"))
    await kubelet.run(pod, "main", FIRST_ACT)
    assert await said(kubelet, pod) == OWN
    await eventually(lambda: gate_of(gate).get("bornPinned") == 1, "it to be born pinned")
