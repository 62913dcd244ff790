"""The poll-mode example has a pinned thread on each CPU that stays, and none on others.

Its threads are real, and so are their affinities. It needs two CPUs and a C compiler.
"""

import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from numapin_api.cpuset import CpuSet
from support.real.telling.downward_volume import DownwardVolume
from support.real.telling.example import Example, started
from support.real.telling.poll_mode import build_poll_mode
from support.real.waiting import eventually

ALL = CpuSet(os.sched_getaffinity(0))
IDLE_MICROSECONDS = "1000"

pytestmark = [
    pytest.mark.skipif(len(ALL) < 2, reason="needs two CPUs"),
    pytest.mark.skipif(
        shutil.which("gcc") is None, reason="needs gcc; lab/system-packages installs it"
    ),
]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_poll_mode(tmp_path_factory.mktemp("poll_mode"))


class Running(Example):
    """The example, running."""

    def lcores(self) -> list[int]:
        """The ids of its threads, but for the main one."""
        pid = self.process.pid
        return [
            one for each in Path(f"/proc/{pid}/task").iterdir() if (one := int(each.name)) != pid
        ]

    def threads(self) -> list[str]:
        """The CPUs that each lcore may use, as the kernel says."""
        sets = []
        for one in self.lcores():
            with suppress(ProcessLookupError):  # it has just ended
                sets.append(str(CpuSet(os.sched_getaffinity(one))))
        return sorted(sets)


@asynccontextmanager
async def polling(program: Path, volume: DownwardVolume) -> AsyncIterator[Running]:
    command = (str(program), str(volume.file), "main", IDLE_MICROSECONDS)
    async with started(*command) as process:
        yield Running(process)


def state(main: int | None, *lcores: int, lost: int = 0) -> dict[str, Any]:
    return {"main": main, "lcores": [*lcores], "lost": lost}


async def test_an_lcore_begins_and_ends_with_each_cpu(
    program: Path, volume: DownwardVolume
) -> None:
    first, second = sorted(ALL)[:2]
    one, other = CpuSet([first]), CpuSet([second])
    async with polling(program, volume) as running:
        assert await running.said() == state(None)
        assert running.threads() == []
        volume.announce(other)
        assert await running.said() == state(second, second)
        assert running.threads() == [str(other)]
        volume.announce(one | other)  # a grow: the main lcore stays
        assert await running.said() == state(second, first, second)
        assert running.threads() == sorted([str(one), str(other)])
        volume.announce(one | other, leaving=one)
        assert await running.said() == state(second, second)
        assert running.threads() == [str(other)]
        volume.announce(one | other, leaving=other)  # a move
        assert await running.said() == state(first, first)
        assert running.threads() == [str(one)]
        volume.write("")
        assert await running.said() == state(None)
        assert running.threads() == []


async def test_lcores_wait_for_new_cpus_until_the_time_is_known(
    program: Path, volume: DownwardVolume
) -> None:
    """No machine of ours has CPU 8191: the kernel answers as for one outside of the cpuset."""
    first, second = sorted(ALL)[:2]
    have, absent = CpuSet([first, second]), CpuSet([8191])
    async with polling(program, volume) as running:
        await running.said()
        volume.announce(have)
        assert await running.said() == state(first, first, second)
        volume.announce(have | absent, leaving=CpuSet([first]), at=None)
        volume.announce(have | absent, leaving=CpuSet([second]))
        assert await running.said() == state(first, first)


async def test_many_changes_in_a_row_come_to_the_last_one(
    program: Path, volume: DownwardVolume
) -> None:
    one, other = (CpuSet([cpu]) for cpu in sorted(ALL)[:2])
    async with polling(program, volume) as running:
        await running.said()
        for _ in range(100):
            volume.announce(one)
            volume.announce(other)
        await eventually(lambda: running.threads() == [str(other)])


async def test_a_thread_that_lost_its_cpu_is_pinned_again(
    program: Path, volume: DownwardVolume
) -> None:
    """As Linux before 6.2 does it to all threads when the set of their container changes."""
    one, other = (CpuSet([cpu]) for cpu in sorted(ALL)[:2])
    async with polling(program, volume) as running:
        await running.said()
        volume.announce(one)
        await running.said()
        (thread,) = running.lcores()
        os.sched_setaffinity(thread, other)
        await eventually(lambda: running.threads() == [str(one)])


@pytest.mark.parametrize(
    "text",
    [
        "{",
        '{"version"',
        '{"version": 1, "containers',
        '{"version": 1, "containers": {"main": {"cpus": "0',
        '{"version": 1, "containers": {"main": {"cpus": "a"}}}',
        '{"version": 1, "containers": {"main": {"cpus": "0-',
        '{"version": 1, "containers": [{"main": 1}], "main": "\\',
        '[{"}',
        '{"version": 2, "containers": []}',
    ],
)
async def test_a_text_that_is_no_annotation_does_not_end_it(
    program: Path, volume: DownwardVolume, text: str
) -> None:
    """A tenant may write anything there, until the operator overwrites it."""
    one = CpuSet([min(ALL)])
    async with polling(program, volume) as running:
        await running.said()
        volume.write(text)
        volume.announce(one)
        await eventually(lambda: running.threads() == [str(one)])
