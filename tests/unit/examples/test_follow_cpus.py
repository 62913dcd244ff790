"""The example follows the file, which is replaced here as the kubelet replaces it.

Its threads are real, and so are their affinities. It needs two CPUs.
"""

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from numapin_api.cpuset import CpuSet
from support.real.telling.downward_volume import DownwardVolume
from support.real.telling.example import Example, started
from support.real.waiting import eventually

PROGRAM = Path(__file__).parents[3] / "examples" / "follow_cpus.py"
ALL = CpuSet(os.sched_getaffinity(0))

pytestmark = pytest.mark.skipif(len(ALL) < 2, reason="needs two CPUs")


class Program(Example):
    """The example, running."""

    def workers(self) -> list[str]:
        """The CPUs that each worker thread may use, as the kernel says."""
        pid = self.process.pid
        threads = sorted(int(one.name) for one in Path(f"/proc/{pid}/task").iterdir())
        return [
            line.split()[1]
            for thread in threads
            if thread != pid  # the main thread is not pinned
            for line in Path(f"/proc/{pid}/task/{thread}/status").read_text().splitlines()
            if line.startswith("Cpus_allowed_list")
        ]


@asynccontextmanager
async def following(volume: DownwardVolume, workers: int = 2) -> AsyncIterator[Program]:
    command = (sys.executable, str(PROGRAM), str(volume.file), "main", str(workers))
    async with started(*command) as process:
        yield Program(process)


async def test_threads_leave_cpus_that_will_leave_and_return_to_new_ones(
    volume: DownwardVolume,
) -> None:
    one, other = (CpuSet([cpu]) for cpu in sorted(ALL)[:2])
    async with following(volume) as program:
        assert (await program.said())["workers"] == [None, None]
        assert program.workers() == [str(ALL)] * 2
        volume.announce(one | other)
        assert (await program.said())["workers"] == [*one, *other]
        assert program.workers() == [str(one), str(other)]
        volume.announce(one | other, leaving=one)
        said = await program.said()
        assert (said["leaving"], said["at"]) == ([*one], "2030-01-01T00:00:31Z")
        assert said["workers"] == [*other, *other]
        assert program.workers() == [str(other)] * 2
        volume.announce(other)
        assert (await program.said())["workers"] == [*other, *other]
        volume.write("")
        assert (await program.said())["workers"] == [None, None]
        assert program.workers() == [str(ALL)] * 2


async def test_many_changes_in_a_row_come_to_the_last_one(volume: DownwardVolume) -> None:
    one, other = (CpuSet([cpu]) for cpu in sorted(ALL)[:2])
    async with following(volume) as program:
        await program.said()
        for _ in range(100):
            volume.announce(one)
            volume.announce(other)
        await eventually(lambda: program.workers() == [str(other)] * 2)


async def test_a_cpu_that_is_not_in_force_yet_is_tried_again(volume: DownwardVolume) -> None:
    """No machine of ours has CPU 8191: the kernel answers as for one outside of the cpuset."""
    one, absent = CpuSet([min(ALL)]), CpuSet([8191])
    async with following(volume) as program:
        await program.said()
        volume.announce(one | absent)
        assert (await program.said())["workers"] == [*one, None]
        volume.announce(one)
        await eventually(lambda: program.workers() == [str(one)] * 2)
