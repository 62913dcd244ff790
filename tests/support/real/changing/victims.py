"""Which parts are killed at the steps of a resize or a move."""

import os

from numapin_campaigns.parts.part import AGENTS
from numapin_campaigns.steps.passing import VICTIMS

STEPS = "NUMAPIN_TEST_STEPS"


def victims() -> list[tuple[str, ...]]:
    """All three at each step; with NUMAPIN_TEST_STEPS=all every choice of them as well."""
    return [*VICTIMS] if os.environ.get(STEPS) == "all" else [AGENTS]
