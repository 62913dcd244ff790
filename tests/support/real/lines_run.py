"""How much Python a step of the event loop runs; unlike its time, this is the same each time."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def lines_run(step: Callable[[], object]) -> int:
    """How many lines of Python are run, by the step and by all that it calls in this thread."""
    lines, tracing = 0, sys.gettrace()

    def count(_: FrameType, event: str, __: Any) -> Any:
        nonlocal lines
        lines += event == "line"
        return count

    sys.settrace(count)
    try:
        step()
    finally:
        sys.settrace(tracing)
    return lines
