"""Makes a machine, runs what is asked for in it, and removes it."""

import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from numapin_lab.bare.machine import (
    INTERRUPTED,
    BareMachine,
    FailedError,
    Progress,
    check,
    find_go,
    remove,
)
from numapin_lab.bare.options import parse_options
from numapin_lab.errors import LabError


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the machine, run what is asked for, remove it."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    options = parse_options(sys.argv[1:] if arguments is None else arguments)
    tell = Progress()
    try:
        check()
        go = find_go()
        folder = Path(tempfile.mkdtemp(prefix="numapin-bare-", dir=options.folder))
        try:
            machine = BareMachine(folder / "root", options, go, tell)
            machine.make()
            machine.run()
        finally:
            if options.keep:
                tell(f"the machine's files are in {folder / 'root'}")
            else:
                tell("removing the machine")
                remove(folder)
    except FailedError as failed:
        tell(str(failed))
        return failed.status
    except KeyboardInterrupt:
        return INTERRUPTED
    except (LabError, OSError, subprocess.CalledProcessError) as problem:
        tell(str(problem))
        return 1
    tell("all of it ended with 0")
    return 0
