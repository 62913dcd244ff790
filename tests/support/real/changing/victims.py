"""Which parts are killed at the steps of a resize or a move."""

import os
from itertools import combinations

STEPS = "NUMAPIN_TEST_STEPS"
ALL = ("operator", "enforcer", "standby")


def victims() -> list[tuple[str, ...]]:
    """All three at each step; with NUMAPIN_TEST_STEPS=all every choice of them as well."""
    if os.environ.get(STEPS) != "all":
        return [ALL]
    return [one for number in (1, 2, 3) for one in combinations(ALL, number)]
