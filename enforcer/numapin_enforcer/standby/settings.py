"""The standby's frozen settings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from numapin_daemon.logs.options import LOG_OPTIONS
from numapin_daemon.options import Option, OptionParser
from numapin_daemon.version import VERSION
from numapin_enforcer.settings import (
    HOST,
    NODE_NAME,
    PRIORITY,
    NodeSettings,
    need_node_name,
)

_DESCRIPTION: Final = """\
Stands by for this node's enforcer. While the enforcer does not run (it crashed, is replaced, or
hangs), the standby keeps new pods off the exclusive CPUs of others, by the assignment that the
enforcer saved on the node. It pins no container and reports nothing. It stops when the enforcer
runs again."""

_EPILOG: Final = """\
Every option can be set in the environment instead: NUMAPIN_ and its name in capitals, such as
NUMAPIN_STATE_DIR; the node's name also as NODE_NAME. An option on the command line wins. The
other options must be the same as the enforcer's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StandbySettings(NodeSettings):
    """The settings of the standby."""

    ready_file: Path | None


_READY_FILE: Final = Option(
    "--ready-file",
    None,
    "a file that exists while this process stands by or fences, for a readiness probe",
    type=Path,
    metavar="FILE",
)


def parse_standby_settings(
    arguments: Sequence[str], environment: Mapping[str, str]
) -> StandbySettings:
    """Read the standby's command line and environment.

    Raises:
        SystemExit: as in `parse_settings`.
    """
    program = "numapin-standby"
    parser = OptionParser(program, environment, description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_version(f"{program} {VERSION}")
    parser.add(NODE_NAME, group="the cluster")
    parser.add(*HOST, group="the host")
    parser.add(_READY_FILE, PRIORITY, *LOG_OPTIONS, group="running")
    options = parser.parse(arguments)
    need_node_name(parser, options)
    return StandbySettings(**options)
