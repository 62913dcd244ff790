"""The NRI plug-in and a real containerd."""

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from functools import partial

import pytest

from numapin_api.cpuset import CpuSet, MemSet
from numapin_enforcer.runtime.nri.plugin import NriPlugin
from numapin_enforcer.runtime.nri.values import NriContainer, RuntimeTimeouts, Sets
from numapin_lab.node.played_kubelet import FIRST_ACT, Kubelet
from support.real.waiting import eventually

ONE = Sets(CpuSet.parse("1"), MemSet.parse("0"))
DROPPED_AFTER_SECONDS = 2
"""containerd's plugin_request_timeout."""


@dataclass
class Gate:
    """Gives every container CPU 1, so many seconds after it was asked."""

    wait_seconds: float = 0.0
    asked: list[NriContainer] = field(default_factory=list)
    started: list[NriContainer] = field(default_factory=list)

    def registered(self, about: RuntimeTimeouts) -> None:
        assert (about.runtime, about.request_seconds) == ("containerd", DROPPED_AFTER_SECONDS)

    async def create(self, container: NriContainer) -> Sets | None:
        self.asked.append(container)
        await asyncio.sleep(self.wait_seconds)
        return ONE

    async def start(self, container: NriContainer) -> None:
        self.started.append(container)


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
async def plugin(kubelet: Kubelet, gate: Gate) -> AsyncIterator[NriPlugin]:
    made = NriPlugin(kubelet.runtime.nri_socket, gate)
    made.want(is_wanted=True)
    running = asyncio.create_task(made.run())
    await eventually(lambda: made.about is not None, "the plug-in to be registered")
    yield made
    running.cancel()


async def test_a_container_is_born_with_what_the_plugin_answers(
    kubelet: Kubelet, plugin: NriPlugin, gate: Gate
) -> None:
    pod = await kubelet.run_pod("born")
    id_ = await kubelet.create(pod, "main", FIRST_ACT, quota_us=100_000)
    assert (len(gate.asked), gate.started) == (1, [])
    asked = gate.asked[0]
    assert (asked.id, asked.name, asked.pod_uid, asked.namespace, asked.pod) == (
        id_,
        "main",
        pod.uid,
        "default",
        "born",
    )
    assert asked.cgroup_parent == f"/{pod.cgroup}"
    assert (asked.cpu_shares, asked.quota_us, asked.period_us) == (1024, 100_000, 100_000)
    await kubelet.begin(id_)
    assert [one.id for one in gate.started] == [id_]
    assert await eventually(partial(kubelet.output, pod, "main")) == "Cpus_allowed_list:\t1"


async def test_a_plugin_that_is_too_slow_is_dropped_and_registers_again(
    kubelet: Kubelet, plugin: NriPlugin, gate: Gate
) -> None:
    pod = await kubelet.run_pod("late")
    gate.wait_seconds = DROPPED_AFTER_SECONDS + 1
    began = time.monotonic()
    await kubelet.run(pod, "late", FIRST_ACT)
    assert time.monotonic() - began > DROPPED_AFTER_SECONDS
    assert await eventually(partial(kubelet.output, pod, "late")) == "Cpus_allowed_list:\t0-1"
    gate.wait_seconds = 0.0
    await eventually(lambda: plugin.lost == 1 and plugin.about, "the plug-in to register again")
    await kubelet.run(pod, "next", FIRST_ACT)
    assert await eventually(partial(kubelet.output, pod, "next")) == "Cpus_allowed_list:\t1"


async def test_one_container_that_waits_delays_all_others(
    kubelet: Kubelet, plugin: NriPlugin, gate: Gate
) -> None:
    """containerd asks about one container after the other, whatever the plug-in does."""
    one, other = await kubelet.run_pod("one"), await kubelet.run_pod("other")
    gate.wait_seconds = 1.0
    began = time.monotonic()
    await asyncio.gather(*(kubelet.create(pod, "main", FIRST_ACT) for pod in (one, other)))
    assert time.monotonic() - began >= 2 * gate.wait_seconds
