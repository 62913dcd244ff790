"""When another container had a CPU that one had to itself."""

import pytest

from numapin_api.cpuset import CpuSet
from numapin_campaigns.recording.recording import Change
from numapin_campaigns.recording.sharing import FOREVER, seconds_shared_each_time

OWN = CpuSet.parse("1")
Rows = list[tuple[float, str]]


def changes(rows: Rows) -> list[Change]:
    return [Change(at, CpuSet.parse(cpus), runs=True) for at, cpus in rows]


@pytest.mark.parametrize(
    ("owner", "other", "seconds"),
    [
        pytest.param([(1, "1")], [(1, "0")], [], id="never"),
        pytest.param(
            [(1, "1"), (6, "0-1")],
            [(1, "0"), (4, "0-1")],
            [2],
            id="the other enters before the owner has more",
        ),
        pytest.param(
            [(1, "1")], [(1, "0"), (4, "0-1"), (7, "0")], [3], id="the other enters and leaves"
        ),
        pytest.param(
            [(1, "0-1"), (3, "1")], [(1, "0-1"), (8, "0")], [5], id="the other leaves late"
        ),
        pytest.param(
            [(1, "1"), (3, "0-1"), (5, "1"), (6, "0-1")],
            [(1, "0"), (4, "0-1")],
            [],
            id="an older set is written for a container that was shared by then",
        ),
        pytest.param(
            [(1, "1"), (3, "0-1"), (5, "1")],
            [(1, "0"), (4, "0-1"), (9, "0")],
            [4],
            id="an older set, and then it is exclusive",
        ),
        pytest.param(
            [(1, "1"), (3, "0-1"), (5, "1")],
            [(1, "0"), (4, "0-1")],
            [FOREVER],
            id="an older set stays",
        ),
        pytest.param(
            [(1, "0-1"), (3, "1"), (6, "0")],
            [(1, "0-1")],
            [3],
            id="an owner that moves away got nothing back",
        ),
        pytest.param(
            [(1, "1")],
            [(1, "0"), (2, "0-1"), (3, "0"), (4, "1"), (5, "0")],
            [1, 1],
            id="twice",
        ),
    ],
)
def test_each_time_another_has_a_cpu_of_the_owner(
    owner: Rows, other: Rows, seconds: list[float]
) -> None:
    assert seconds_shared_each_time(changes(owner), changes(other), OWN) == seconds
