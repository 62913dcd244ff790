"""The command line of `numapin topology`."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Final

from numapin_cli.subcommand import Subcommand, run_of

_DESCRIPTION: Final = """\
Show the sockets, NUMA nodes, L3 caches, cores, memory, huge pages, distances and PCI devices of
this machine, or of one whose /sys and /proc were copied to a folder, as the enforcer discovers
them. Errors in the firmware's tables are listed as warnings, with what is assumed instead.

With -o json the output is a machine file for `numapin simulate` and `numapin plan`.
"""

_EPILOG: Final = """\
examples:
  numapin topology
  numapin topology -o json > machines/worker-1.json
  numapin topology --root /tmp/captured     (which holds sys/ and proc/)
"""


def _add_arguments(parser: ArgumentParser) -> None:
    parser.epilog = _EPILOG
    parser.add_argument(
        "--root",
        type=Path,
        default=Path("/"),
        metavar="DIR",
        help="folder that holds the machine's sys and proc (default: /)",
    )
    parser.add_argument(
        "-o",
        "--output",
        choices=("text", "json"),
        default="text",
        help="a drawing for people, or a machine in JSON (default: text)",
    )


TOPOLOGY: Final = Subcommand(
    name="topology",
    summary="show the CPUs, caches, NUMA nodes, memory and PCI devices of a machine",
    description=_DESCRIPTION,
    add_arguments=_add_arguments,
    run=run_of("numapin_cli.commands.topology"),
)
