"""`numapin-standby`: read settings, build, run."""

import logging
import os
import signal
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

from numapin_daemon.logs.lines import setup_logging
from numapin_enforcer.cgroups.errors import CgroupError
from numapin_enforcer.cgroups.mounts import NoCpusetError
from numapin_enforcer.cgroups.naming import InvalidIdError
from numapin_enforcer.hardware.discovery import DiscoveryError
from numapin_enforcer.node.kubelet_checkpoint import checkpoint_replaced
from numapin_enforcer.node.realtime import raise_priority
from numapin_enforcer.standby.fencing import Standby
from numapin_enforcer.standby.settings import parse_standby_settings

LOG: Final = logging.getLogger(__name__)

OUTDATED_SECONDS: Final = 60.0
"""How often to look whether the kubelet has replaced what is mounted here."""

_EXPECTED: Final = (CgroupError, DiscoveryError, InvalidIdError, NoCpusetError, OSError)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run until SIGTERM or SIGINT; every cgroup stays as it is then."""
    settings = parse_standby_settings(sys.argv[1:] if arguments is None else arguments, os.environ)
    setup_logging(settings.log_level, settings.log_format)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end)
    signal.signal(signal.SIGALRM, partial(_check, settings.kubelet_state_dir))
    signal.setitimer(signal.ITIMER_REAL, OUTDATED_SECONDS, OUTDATED_SECONDS)
    raise_priority(settings.realtime_priority)
    ready = settings.ready_file
    try:
        _remove(ready)  # of a process that was killed
        standby = Standby(settings)
        if ready is not None:
            ready.touch()
        standby.run()
    except _EXPECTED as error:
        sys.exit(f"numapin-standby: {error}")
    finally:
        _remove(ready)


def _remove(ready_file: Path | None) -> None:
    if ready_file is not None:
        ready_file.unlink(missing_ok=True)


def _end(*_: object) -> None:
    sys.exit(0)


def _check(kubelet_state_dir: Path, *_: object) -> None:
    """End if only a restart shows the kubelet's current files; the pod restarts the program."""
    if why := checkpoint_replaced(kubelet_state_dir):
        sys.exit(f"numapin-standby: {why}")


if __name__ == "__main__":
    main()
