"""`numapin topology`: the hardware of this machine, or of a captured one."""

import sys
from argparse import Namespace

from numapin_api.hardware.machine_file import format_machine
from numapin_api.topology import Topology
from numapin_cli.inputs.machines import discover_below


def run(options: Namespace) -> int:
    """Carry it out; returns the exit status."""
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
