"""`python -m numapin_campaigns`: run one campaign on a lab of its own."""

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from numapin_campaigns import demo
from numapin_campaigns.chaos import command as chaos
from numapin_campaigns.frame import command as frame
from numapin_campaigns.moves import command as moves
from numapin_lab.components.build import say
from numapin_lab.errors import LabError
from numapin_lab.lifecycle import LabFolder
from numapin_lab.requirements import check

DEFAULT_FOLDER = ".lab"
INTERRUPTED = 130
_DESCRIPTION = "Campaigns on a real one-node Kubernetes. docs/lab.md describes them."


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one campaign; returns the exit status: 0 if nothing was found."""
    options = build_parser().parse_args(arguments)
    # SIGTERM is treated like Ctrl-C: the demo takes its lab down.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    folder = Path(options.dir).absolute()
    try:
        return COMMANDS[options.command](folder, options)
    except (LabError, OSError) as error:
        say(f"{options.command}: {error}")
        return 1
    except KeyboardInterrupt:
        down = f"{sys.executable} -m numapin_lab down --dir {folder}"
        say(f"{options.command}: interrupted; remove what was started with: {down}")
        return INTERRUPTED


def build_parser() -> argparse.ArgumentParser:
    """Options and campaigns."""
    parser = argparse.ArgumentParser(prog="python -m numapin_campaigns", description=_DESCRIPTION)
    commands = parser.add_subparsers(dest="command", required=True, metavar="CAMPAIGN")
    shown = commands.add_parser("demo", help="apply the examples and check what the kernel does")
    shown.add_argument("--keep", action="store_true", help="leave the lab running at the end")
    shown.add_argument(
        "--from-source",
        action="store_true",
        help="run operator and enforcer as processes of this checkout, not as pods from images",
    )
    disturbed = commands.add_parser(
        "chaos", help="kill parts and overwrite cpusets under load, and watch the kernel"
    )
    frame.add_options(disturbed)
    chaos.add_options(disturbed)
    moves.add_options(disturbed)
    for command in commands.choices.values():
        command.add_argument(
            "--dir",
            default=os.environ.get("NUMAPIN_LAB", DEFAULT_FOLDER),
            help="the lab's folder; several labs live side by side (default: %(default)s)",
        )
    return parser


def _demo(path: Path, options: argparse.Namespace) -> int:
    pods = not options.from_source
    check(_command("demo", path), pods=pods)
    demo.run(LabFolder(path, pods=pods), f"{sys.executable} -m numapin_lab", options.keep)
    return 0


def _chaos(path: Path, options: argparse.Namespace) -> int:
    """Exit status 0: no violation and no problem; 1: see the report."""
    pods = not options.from_source and not options.moves
    check(_command("chaos", path), pods=pods)
    if options.moves:
        folder = LabFolder(path, vm=True)
        good = moves.MOVES.carry_out(folder, moves.MOVES.planned(options), options.keep)
    else:
        folder = LabFolder(path, pods=pods)
        good = chaos.CHAOS.carry_out(folder, chaos.CHAOS.planned(options), options.keep)
    return 0 if good else 1


def _command(command: str, path: Path) -> str:
    return f"{sys.executable} -m numapin_campaigns {command} --dir {path}"


COMMANDS = {"demo": _demo, "chaos": _chaos}

if __name__ == "__main__":
    sys.exit(main())
