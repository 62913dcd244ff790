"""What cgroups beside the kubelet's get, and get back, over models of kernel and systemd."""

import errno
from pathlib import Path

import pytest

from numapin_api.cpuset import CpuSet
from numapin_enforcer.cgroups.errors import error_of
from numapin_enforcer.cgroups.tree import Version
from numapin_enforcer.host.cgroup_sets import KeepOff
from numapin_enforcer.host.found import FoundCgroups
from numapin_enforcer.host.keeper import HostKeeper, Look
from numapin_enforcer.host.units import CHECK_SECONDS, Units
from numapin_enforcer.plan.drift import Cause
from numapin_enforcer.systemd.interface import SystemdRefusedError, SystemdUnavailableError
from support.fakes.kernels.host_cgroups import FakeHost
from support.fakes.manual_clock import ManualClock

EVERY = CpuSet(range(8))
LEAST = CpuSet((0, 1))
POD_TREES = ("kubepods", "kubepods.slice")
SLICES = ("init.scope", "system.slice", "user.slice")


class Node:
    """One enforcer after the other on one host."""

    def __init__(self, host: FakeHost, folder: Path) -> None:
        self.host, self.folder, self.clock = host, folder, ManualClock()
        self.restart()

    def restart(self) -> None:
        units = Units(lambda: self.host, self.clock)
        self.keeper = HostKeeper(self.host, FoundCgroups(self.folder, "boot"), units)

    async def keep_off(self, cpus: str, least: CpuSet = LEAST) -> Look:
        return await self.keeper.bring(KeepOff(CpuSet.parse(cpus), least, POD_TREES))


@pytest.fixture
def host() -> FakeHost:
    made = FakeHost(EVERY)
    for path in (*SLICES, "kubepods.slice"):
        made.make(path)
    made.empty |= {"machine.slice"}
    return made


@pytest.fixture
def node(host: FakeHost, tmp_path: Path) -> Node:
    return Node(host, tmp_path)


async def test_slices_leave_exclusive_cpus_and_systemd_knows(node: Node, host: FakeHost) -> None:
    look = await node.keep_off("2-3")
    assert host.sets == {**dict.fromkeys(SLICES, "0-1,4-7"), "kubepods.slice": ""}
    assert [str(host.properties[one]) for one in SLICES] == ["0-1,4-7"] * 3
    assert str(host.properties["kubepods.slice"]) == ""
    assert (str(look.usable), look.problems, look.drifts) == ("0-1,4-7", (), ())


async def test_slices_follow_as_containers_come_and_go(node: Node, host: FakeHost) -> None:
    for cpus, left in (("2", "0-1,3-7"), ("2,4", "0-1,3,5-7"), ("4", "0-3,5-7")):
        await node.keep_off(cpus)
        assert host.sets["system.slice"] == left
    assert host.writes == [], "systemd writes what it has"


async def test_all_is_as_found_after_the_last_exclusive_cpu(node: Node, host: FakeHost) -> None:
    host.clears = True
    host.set_property("user.slice", CpuSet((1, 2)))
    before = (host.sets, dict(host.properties))
    await node.keep_off("2-3")
    assert host.sets["user.slice"] == "1"
    look = await node.keep_off("")
    assert (host.sets, host.properties) == before
    assert look.problems == ()
    assert node.keeper.found.cgroups == {}


async def test_a_kernel_that_clears_no_set_has_all_cpus(node: Node, host: FakeHost) -> None:
    """So Linux 6.1 and 6.12: any CPU may be used as before, and systemd has nothing left."""
    await node.keep_off("2-3")
    look = await node.keep_off("")
    assert host.sets["system.slice"] == "0-7"
    assert host.properties["system.slice"] == CpuSet()
    assert (look.problems, node.keeper.found.cgroups) == ((), {})


async def test_a_slice_of_exclusive_cpus_alone_gets_the_reserved_and_shared(
    node: Node, host: FakeHost
) -> None:
    host.set_property("user.slice", CpuSet((2, 3)))
    await node.keep_off("2-3")
    assert host.sets["user.slice"] == "0-1"


async def test_a_new_slice_is_kept_off_and_gets_back_what_it_came_with(
    node: Node, host: FakeHost
) -> None:
    host.clears = True
    await node.keep_off("2-3")
    host.make("machine.slice", "3-4")
    await node.keep_off("2-3")
    assert host.sets["machine.slice"] == "4"
    await node.keep_off("")
    assert host.sets["machine.slice"] == "3-4"


async def test_a_slice_that_is_not_active_gets_back_what_it_had(node: Node, host: FakeHost) -> None:
    """Otherwise its next cgroup would begin with what systemd was sent."""
    host.make("machine.slice")
    await node.keep_off("2-3")
    host.vanish("machine.slice")
    await node.keep_off("2-3")
    assert host.properties["machine.slice"] == CpuSet.parse("0-1,4-7")
    await node.keep_off("")
    assert host.properties["machine.slice"] == CpuSet()
    assert node.keeper.found.cgroups == {}


@pytest.mark.parametrize("cpus", ["", "2", "0-7"], ids=str)
async def test_a_foreign_property_is_reverted_and_counted(
    node: Node, host: FakeHost, cpus: str
) -> None:
    await node.keep_off("2-3")
    host.set_property("system.slice", CpuSet.parse(cpus))
    await node.clock.advance(CHECK_SECONDS)
    look = await node.keep_off("2-3")
    assert [(one.path, one.cause) for one in look.drifts] == [
        ("system.slice", Cause.HOST_PROCESSES)
    ]
    assert host.sets["system.slice"] == "0-1,4-7"
    assert str(host.properties["system.slice"]) == "0-1,4-7"
    assert (await node.keep_off("2-3")).drifts == ()


async def test_a_write_past_systemd_is_reverted_and_counted(node: Node, host: FakeHost) -> None:
    await node.keep_off("2-3")
    host.put("user.slice", CpuSet((2,)))
    look = await node.keep_off("2-3")
    assert [str(one) for one in look.drifts] == [
        "cgroup user.slice had cpus 2 instead of 0-1,4-7; reverted"
    ]
    assert host.sets["user.slice"] == "0-1,4-7"


async def test_a_write_amid_a_look_is_counted_by_the_next(node: Node, host: FakeHost) -> None:
    await node.keep_off("2-3")
    host.before_read[host.reads + 2] = lambda: host.write("user.slice", EVERY)
    looks = [await node.keep_off("2-3") for _ in range(3)]
    assert [[one.path for one in look.drifts] for look in looks] == [[], ["user.slice"], []]


async def test_a_write_while_systemd_is_told_is_counted(node: Node, host: FakeHost) -> None:
    await node.keep_off("2-3")
    host.set_property("system.slice", EVERY)
    host.before_read[host.reads + 2] = lambda: host.write("user.slice", EVERY)
    await node.clock.advance(CHECK_SECONDS)
    assert sorted(one.path for one in (await node.keep_off("2-3")).drifts) == [*SLICES[1:]]
    assert host.sets["user.slice"] == "0-1,4-7"


async def test_systemd_is_asked_no_more_than_needed(node: Node, host: FakeHost) -> None:
    await node.keep_off("2-3")
    host.calls.clear()
    await node.keep_off("2-3")
    assert host.calls == []
    await node.clock.advance(CHECK_SECONDS)
    await node.keep_off("2-3")
    assert sorted(host.calls) == sorted(SLICES)


@pytest.mark.parametrize("moment", [2, 3], ids=["systemd has answered", "all is written"])
async def test_a_property_that_others_set_meanwhile_is_found_next(
    node: Node, host: FakeHost, moment: int
) -> None:
    host.before_read[moment] = lambda: host.set_property("system.slice", EVERY)
    for _ in range(2):
        await node.keep_off("2-3")
    assert host.sets["system.slice"] == "0-1,4-7"
    assert str(host.properties["system.slice"]) == "0-1,4-7"


async def test_without_systemd_the_kernel_is_written(tmp_path: Path) -> None:
    host = FakeHost(EVERY, is_systemd=False, clears=True)
    for path in ("init", "podruntime", "kubepods"):
        host.make(path)
    before, node = host.sets, Node(host, tmp_path)
    await node.keep_off("2-3")
    assert host.sets == {"init": "0-1,4-7", "podruntime": "0-1,4-7", "kubepods": ""}
    await node.keep_off("")
    assert (host.sets, host.calls) == (before, [])


async def test_a_cgroup_that_is_no_unit_is_written_beside_systemd(
    node: Node, host: FakeHost
) -> None:
    host.make("k8s.io", unit=False)
    host.make("left.slice", unit=False)
    await node.keep_off("2-3")
    assert (host.sets["k8s.io"], host.sets["left.slice"]) == ("0-1,4-7", "0-1,4-7")
    assert "left.slice" not in host.properties


async def test_a_cgroup_that_is_made_again_is_another_one(tmp_path: Path) -> None:
    host = FakeHost(EVERY, is_systemd=False, clears=True)
    host.make("docker")
    node = Node(host, tmp_path)
    await node.keep_off("2-3")
    host.vanish("docker")
    host.make("docker", "3-5")
    look = await node.keep_off("2-3")
    assert (host.sets["docker"], look.drifts) == ("4-5", ())
    await node.keep_off("")
    assert host.sets["docker"] == "3-5"


async def test_children_on_v1_leave_first_and_come_back_last(tmp_path: Path) -> None:
    host = FakeHost(EVERY, Version.V1, is_systemd=False)
    for path, cpus in (("docker", "0-7"), ("docker/a", "0-7"), ("docker/b", "2-3")):
        host.make(path, cpus)
    before, node = host.sets, Node(host, tmp_path)
    await node.keep_off("2-3")
    assert host.sets == {"docker": "0-1,4-7", "docker/a": "0-1,4-7", "docker/b": "0-1,4-7"}
    host.make("docker/late", "0-1,4-7")
    for cpus in ("4", "2-3,6", ""):
        look = await node.keep_off(cpus)
        assert look.problems == ()
    assert host.sets == {**before, "docker/late": "0-7"}


async def test_a_systemd_that_does_not_answer_keeps_nothing_else_from_it(
    node: Node, host: FakeHost
) -> None:
    host.make("k8s.io", unit=False)
    host.failure = SystemdUnavailableError("no answer")
    look = await node.keep_off("2-3")
    assert look.problems == ("init.scope, system.slice, user.slice: no answer",)
    assert host.sets["k8s.io"] == "0-1,4-7"
    assert look.usable == EVERY
    host.failure = None
    assert (await node.keep_off("2-3")).problems == ()
    host.failure = SystemdUnavailableError("no answer")
    node.restart()
    await node.keep_off("")
    assert host.sets["system.slice"] == "0-1,4-7", "systemd would write that again"
    assert "system.slice" in node.keeper.found.cgroups


@pytest.mark.parametrize("is_asked", [True, False], ids=["asked", "told"])
async def test_a_change_by_others_does_not_wait_for_systemd(
    node: Node, host: FakeHost, is_asked: bool
) -> None:
    await node.keep_off("2-3")
    host.set_property("user.slice", CpuSet((2,)))
    failure = SystemdUnavailableError("no answer")
    host.failure, host.unit_failures["user.slice"] = failure if is_asked else None, failure
    look = await node.keep_off("2-3")
    assert look.problems != ()
    assert host.sets["user.slice"] == "0-1,4-7"
    host.failure, host.unit_failures = None, {}
    assert (await node.keep_off("2-3")).problems == ()
    assert str(host.properties["user.slice"]) == "0-1,4-7"


async def test_a_unit_that_systemd_refuses_is_named_and_others_are_set(
    node: Node, host: FakeHost
) -> None:
    host.unit_failures["init.scope"] = SystemdRefusedError("Access denied")
    look = await node.keep_off("2-3")
    assert look.problems == ("init.scope: Access denied",)
    assert (host.sets["init.scope"], host.sets["user.slice"]) == ("", "0-1,4-7")
    assert (await node.keep_off("")).problems == ()


@pytest.mark.parametrize("number", [errno.EBUSY, errno.EINVAL, errno.EIO, errno.EPERM, errno.EROFS])
async def test_a_cgroup_that_the_kernel_refuses_is_named(tmp_path: Path, number: int) -> None:
    host = FakeHost(EVERY, is_systemd=False)
    host.make("init")
    host.make("podruntime")
    host.failures["init"] = error_of("init/cpuset.cpus", "0-1,4-7", OSError(number, "no"))
    look = await Node(host, tmp_path).keep_off("2-3")
    assert len(look.problems) == 1
    assert errno.errorcode[number] in look.problems[0]
    assert host.sets["podruntime"] == "0-1,4-7"
    assert look.usable == EVERY


async def test_nothing_is_written_that_cannot_be_saved(
    node: Node, host: FakeHost, tmp_path: Path
) -> None:
    (tmp_path / "host-cgroups.new").mkdir()
    look = await node.keep_off("2-3")
    assert "could not be saved" in look.problems[0]
    assert set(host.sets.values()) == {""}
    assert {*host.properties.values()} == {CpuSet()}
    (tmp_path / "host-cgroups.new").rmdir()
    assert (await node.keep_off("2-3")).problems == ()
