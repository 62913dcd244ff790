"""The operator under cProfile: `profiled.py FILE OPTION...`; the figures go to FILE at its end.

kopf's thread is profiled as well, into FILE with the suffix `.kopf`. Times are CPU times.
"""

import cProfile
import sys
import threading
import time
from pathlib import Path
from typing import Any

from numapin_operator.__main__ import main
from numapin_operator.observe import kopf_source


def profiled() -> int:
    """Run the operator; its exit status."""
    file = Path(sys.argv[1])
    in_thread = kopf_source._run_in_thread  # noqa: SLF001 - there is no other way into its thread

    def run_in_thread(*arguments: Any) -> None:
        profile = cProfile.Profile(time.thread_time)
        try:
            profile.runcall(in_thread, *arguments)
        finally:
            profile.dump_stats(f"{file}.kopf")

    kopf_source._run_in_thread = run_in_thread  # type: ignore[assignment]  # noqa: SLF001
    profile = cProfile.Profile(time.thread_time)
    try:
        return profile.runcall(main, sys.argv[2:])
    finally:
        profile.dump_stats(file)


if __name__ == "__main__":
    assert threading.current_thread() is threading.main_thread()
    sys.exit(profiled())
