"""The search against every way to move containers, on small machines."""

import random
from collections.abc import Iterator

import pytest

from numapin_benchmarks.moves.fragmented import Fragmented, check_search, fragmented

CASES = 210


def _cases(seed: int, count: int) -> Iterator[Fragmented]:
    rng = random.Random(seed)
    while count:
        if (case := fragmented(rng)) is not None:
            count -= 1
            yield case


@pytest.mark.parametrize("seed", range(3))
def test_no_fewer_cpus_would_do(seed: int) -> None:
    found = [check_search(case) for case in _cases(seed, CASES // 3)]
    assert 20 < sum(found) < len(found)
