"""Any history of a node: containers, others who write, slices that come and go, kills anywhere."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numapin_api.cpuset import CpuSet
from numapin_daemon import atomic_file
from numapin_enforcer.cgroups.errors import CgroupError
from numapin_enforcer.cgroups.tree import Version
from numapin_enforcer.host.cgroup_sets import KeepOff
from numapin_enforcer.host.found import FoundCgroups
from numapin_enforcer.host.keeper import HostKeeper
from numapin_enforcer.host.units import CHECK_SECONDS, Units
from support.fakes.kernels.host_cgroups import FakeHost
from support.fakes.manual_clock import ManualClock

EVERY: Final = CpuSet(range(4))
LEAST: Final = CpuSet((0,))
PATHS: Final = {
    "systemd": ("init.scope", "system.slice", "user.slice", "machine.slice", "k8s.io"),
    "v2": ("init", "system", "k8s.io"),
    "v1": ("a", "a/b", "a/b/c", "a/d", "e"),
}

cpus = st.sets(st.integers(1, 3)).map(CpuSet)
some_cpus = st.sets(st.integers(0, 3), min_size=1).map(CpuSet)
kills = st.one_of(st.none(), st.integers(0, 12))
steps = st.lists(
    st.one_of(
        st.tuples(st.just("keep"), cpus, kills),
        st.tuples(st.just("foreign"), st.integers(0, 4), some_cpus),
        st.tuples(st.just("property"), st.integers(0, 4), st.one_of(st.just(CpuSet()), some_cpus)),
        st.tuples(st.just("vanish"), st.integers(0, 4), st.none()),
    ),
    max_size=8,
)


class _KilledError(BaseException):
    """The process ends here."""


class _History:
    """One node, and what each cgroup had when it was kept off CPUs first."""

    def __init__(self, kind: str, clears: bool, folder: Path) -> None:
        version = Version.V1 if kind == "v1" else Version.V2
        self.host = FakeHost(EVERY, version, is_systemd=kind == "systemd", clears=clears)
        self.paths, self.folder, self.clock = PATHS[kind], folder, ManualClock()
        for path in self.paths:
            self.host.make(path, "0-3" if kind == "v1" else "")
        self.had: dict[str, tuple[int, str, str]] = {}
        self._left, self.host.step = -1, self._step
        self.start()

    def start(self) -> None:
        units = Units(lambda: self.host, self.clock)
        self.keeper = HostKeeper(self.host, FoundCgroups(self.folder, "boot"), units)

    def state(self, path: str) -> tuple[int, str, str]:
        one, name = self.host.cgroups[path], path.rpartition("/")[2]
        allowed = self.host.properties.get(name, CpuSet())
        return one.id, str(one.cpus), str(allowed)

    async def keep(self, exclusive: CpuSet, kill_after: int | None) -> None:
        """A round, which may be killed at any change; then the next process makes it again."""
        if exclusive:
            saved = FoundCgroups(self.folder, "boot").cgroups
            for path in self.host.cgroups:
                known = saved.get(path)
                again = known is not None and known.allowed is None
                if known is None or (again and known.id != self.host.cgroups[path].id):
                    self.had[path] = self.state(path)
        wanted = KeepOff(exclusive, LEAST, ("kubepods", "kubepods.slice"))
        if kill_after is not None:
            self._left = kill_after
            with _killing(self._step), suppress(_KilledError):
                await self.keeper.bring(wanted)
            self._left = -1
            self.start()
        await self.clock.advance(CHECK_SECONDS)
        look = await self.keeper.bring(wanted)
        assert look.problems == ()
        for path, one in self.host.cgroups.items():
            assert one.effective_cpus.isdisjoint(exclusive), path
            assert one.effective_cpus, path
        if not exclusive:
            self._all_is_as_found()

    def _all_is_as_found(self) -> None:
        assert self.keeper.found.cgroups == {}
        for path, had in self.had.items():
            now = self.state(path)
            assert now[0] != had[0] or _is_as_found(now, had), path
        self.had = {}

    def _step(self, _: str) -> None:
        if self._left == 0:
            raise _KilledError
        self._left -= 1

    def disturb(self, what: str, number: int, cpus: CpuSet | None) -> None:
        """Others write, or a cgroup ends and is made again."""
        path = self.paths[number % len(self.paths)]
        if path not in self.host.cgroups:
            return
        with suppress(CgroupError):
            if what == "foreign" and cpus is not None:
                self.host.put(path, cpus)
            elif what == "property" and cpus is not None and path.endswith((".slice", ".scope")):
                self.host.set_property(path, cpus)
            elif what == "vanish" and self.host.version is Version.V2:
                self.host.vanish(path)
                self.host.make(path)


@contextmanager
def _killing(step: object) -> Iterator[None]:
    """Kill also while, and just after, the file is written."""
    replace = atomic_file.replace

    def replacing(path: Path, data: bytes) -> None:
        assert callable(step)
        step("before the file")
        replace(path, data)
        step("after the file")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(atomic_file, "replace", replacing)
        yield


def _is_as_found(now: tuple[int, str, str], had: tuple[int, str, str]) -> bool:
    """A kernel that clears no set of processes has all CPUs instead."""
    return now[2] == had[2] and now[1] in ((had[1],) if had[1] else ("", str(EVERY)))


@pytest.mark.parametrize("kind", PATHS)
@given(history=steps, clears=st.booleans(), kill_at_end=kills)
@settings(deadline=None)
def test_no_cgroup_of_the_host_has_an_exclusive_cpu_and_each_gets_back_what_it_had(
    kind: str, history: list[tuple[str, object, object]], clears: bool, kill_at_end: int | None
) -> None:
    async def live(folder: Path) -> None:
        node = _History(kind, clears, folder)
        for what, one, other in history:
            if what == "keep":
                assert isinstance(one, CpuSet)
                assert other is None or isinstance(other, int)
                await node.keep(one, other)
            else:
                assert isinstance(one, int)
                assert other is None or isinstance(other, CpuSet)
                node.disturb(what, one, other)
        await node.keep(CpuSet(), kill_at_end)
        node.start()
        assert node.keeper.found.cgroups == {}

    with TemporaryDirectory() as folder:
        asyncio.run(live(Path(folder)))


async def test_five_hundred_slices(tmp_path: Path) -> None:
    host = FakeHost(EVERY, clears=True)
    for number in range(500):
        host.make(f"s{number}.slice")
    before, clock = host.sets, ManualClock()
    keeper = HostKeeper(host, FoundCgroups(tmp_path, "boot"), Units(lambda: host, clock))
    for _ in range(2):
        host.calls.clear()
        await keeper.bring(KeepOff(CpuSet((2, 3)), LEAST, ()))
    assert set(host.sets.values()) == {"0-1"}
    assert host.calls == [], "systemd has said what it has"
    await keeper.bring(KeepOff())
    assert host.sets == before
