"""Processes of no pod follow what a pass has enforced, over models of kernel and systemd."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from numapin_api.conditions.reasons import Reason
from numapin_api.cpuset import CpuSet
from numapin_api.schema.plain import HostProcessesStatus, NodeAssignmentSpec, System
from numapin_enforcer.host.updater import PAUSE_SECONDS
from numapin_enforcer.plan.drift import Cause
from numapin_enforcer.systemd.interface import SystemdAbsentError
from support.fakes.worlds.followed_node import CPU_2, CPU_3, Node

SLICES = ("init.scope", "system.slice")
KEPT = System(processes="KeepOff")


def kept(spec: NodeAssignmentSpec) -> NodeAssignmentSpec:
    return replace(spec, system=KEPT)


@pytest.fixture
def on_host(node: Node) -> Node:
    for path in SLICES:
        node.host.host.make(path)
    return node


async def ends(node: Node, spec: NodeAssignmentSpec | None, left: str) -> None:
    """A pass, after which system.slice asks for these CPUs in the end."""
    await node.make_pass(spec)
    host = node.host.host
    await node.clock.until(lambda: host.sets["system.slice"] == left)
    await settle(node)


async def settle(node: Node) -> None:
    updater = node.followers.host.updater
    await node.clock.until(lambda: not updater.finishes_soon)
    await node.clock.run_tasks()
    await node.clock.advance(PAUSE_SECONDS)


def status(node: Node) -> HostProcessesStatus | None:
    system = node.facts().content.system
    return system.processes if system is not None else None


async def test_slices_leave_and_get_back_what_containers_have(on_host: Node) -> None:
    node = on_host
    await ends(node, kept(CPU_3), "0-2")
    await node.make_pass(kept(CPU_3))
    assert status(node) == HostProcessesStatus(CpuSet((3,)))
    await ends(node, kept(CPU_2), "0-1,3")
    assert status(node) == HostProcessesStatus(CpuSet((2,)))
    await ends(node, None, "0-3")
    assert status(node) is None
    assert node.host.host.properties["system.slice"] == CpuSet()


async def test_a_spec_that_leaves_them_gives_them_back(on_host: Node) -> None:
    await ends(on_host, kept(CPU_3), "0-2")
    await ends(on_host, CPU_3, "0-3")


async def test_nothing_is_read_or_asked_while_nobody_asks(on_host: Node) -> None:
    node = on_host
    node.host.host.step = pytest.fail
    for full in (False, True):
        await node.make_pass(CPU_3, full=full)
        await settle(node)
    host = node.host
    assert (host.host.calls, host.host.reads, host.watches) == ([], 0, [])
    assert status(node) is None
    assert not host.folder.joinpath("host-cgroups.json").exists()


async def test_a_node_that_is_left_alone_keeps_what_it_has(on_host: Node) -> None:
    node = on_host
    await ends(node, kept(CPU_3), "0-2")
    node.rest(left_alone=True)
    await settle(node)
    assert node.host.host.sets["system.slice"] == "0-2"


async def test_a_foreign_write_is_seen_at_once_and_counted(on_host: Node) -> None:
    node = on_host
    await ends(node, kept(CPU_3), "0-2")
    host, (watch,) = node.host.host, node.host.watches
    assert watch.covered == ("", *SLICES)
    host.put("system.slice", CpuSet((3,)))
    watch.happen()
    await node.clock.until(lambda: host.sets["system.slice"] == "0-2")
    await settle(node)
    await node.make_pass(kept(CPU_3))
    assert [one.cause for one in node.posted.drifts] == [Cause.HOST_PROCESSES]
    assert node.facts().content.drift_causes == {"HostProcesses": 1}


async def test_a_new_slice_is_kept_off_at_once(on_host: Node) -> None:
    node = on_host
    await ends(node, kept(CPU_3), "0-2")
    node.host.host.make("machine.slice")
    node.host.watches[0].happen()
    await node.clock.until(lambda: node.host.host.sets["machine.slice"] == "0-2")


async def test_the_watch_ends_with_the_last_exclusive_cpu(on_host: Node) -> None:
    node = on_host
    await ends(node, kept(CPU_3), "0-2")
    await ends(node, None, "0-3")
    await node.clock.until(lambda: not node.host.watches[0].is_open)
    assert node.host.host.calls[-1] == "close"


async def test_processes_that_no_set_restricts_are_named(on_host: Node) -> None:
    node = on_host
    node.host.roots.names = ("sshd (812)", "bash (9)")
    await ends(node, kept(CPU_3), "0-2")
    why = "no cpuset restricts processes in the root cgroup, such as sshd (812), bash (9)"
    assert status(node) == HostProcessesStatus(CpuSet(), why)
    state = node.followers.host.state()
    assert state.note == f"processes of the host may use exclusive CPUs: {why}"
    assert (state.reason, state.working, state.stalled) == (Reason.HOST_PROCESSES_LEFT, (), ())


async def test_a_systemd_that_is_not_reached_is_said_and_nothing_else_suffers(
    on_host: Node,
) -> None:
    node = on_host
    node.host.host.failure = SystemdAbsentError("there is no /run/dbus (mount it)")
    await node.enforce(kept(CPU_3))
    updater = node.followers.host.updater
    await node.clock.until(lambda: updater.message)
    await settle(node)
    found = status(node)
    assert found == HostProcessesStatus(
        CpuSet(), "init.scope, system.slice: there is no /run/dbus (mount it)"
    )
    assert node.stalled == []
    assert node.sent == ["3"], "its container has its CPUs"


async def test_what_is_not_given_back_is_said(on_host: Node) -> None:
    node = on_host
    await ends(node, kept(CPU_3), "0-2")
    node.host.host.unit_failures["system.slice"] = SystemdAbsentError("gone")
    await node.make_pass(None)
    await node.clock.until(lambda: node.followers.host.state().working)
    (obstacle,) = node.followers.host.state().working
    assert obstacle.reason is Reason.HOST_PROCESSES_LEFT
    assert "system.slice" in obstacle.message


async def test_the_next_process_gives_back_what_the_last_one_took(
    on_host: Node, tmp_path: Path, start: Callable[[Awaitable[None]], None]
) -> None:
    node = on_host
    await ends(node, kept(CPU_3), "0-2")
    node.followers.host.updater = node.host.updater()
    start(node.followers.host.updater.run())
    await ends(node, CPU_3, "0-3")
    assert node.host.keeper().found.cgroups == {}
