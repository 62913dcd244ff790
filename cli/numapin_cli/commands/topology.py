"""`numapin topology`: the hardware of this machine, or of a captured one."""

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Final

from numapin_api.hardware.machine_file import format_machine
from numapin_api.topology import Topology
from numapin_cli.inputs.machines import discover_below
from numapin_cli.subcommand import Subcommand

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


def _run(options: Namespace) -> int:
    topology = discover_below(options.root)
    if options.output == "json":
        sys.stdout.write(format_machine(topology))
        for warning in topology.warnings:
            print(f"warning: {warning}", file=sys.stderr)
    else:
        _draw(topology)
    return 0


def _draw(topology: Topology) -> None:
    """Print for people; only this needs the extra `cli`."""
    from numapin_cli.drawing.machine import draw_machine  # noqa: PLC0415
    from numapin_cli.drawing.text import terminal  # noqa: PLC0415

    terminal().print(draw_machine(topology))


TOPOLOGY: Final = Subcommand(
    name="topology",
    summary="show the CPUs, caches, NUMA nodes, memory and PCI devices of a machine",
    description=_DESCRIPTION,
    add_arguments=_add_arguments,
    run=_run,
)
