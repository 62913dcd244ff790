"""`python -m numapin_campaigns`: run one campaign."""

import argparse
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from numapin_campaigns import demo, told, upgrade
from numapin_campaigns.chaos import command as chaos
from numapin_campaigns.frame import command as frame
from numapin_campaigns.histories import command as histories
from numapin_campaigns.histories.worlds import command as worlds
from numapin_campaigns.holding import command as holding
from numapin_campaigns.hostile import command as hostile
from numapin_campaigns.moves import command as moves
from numapin_lab.__main__ import INTERRUPTED, add_folder
from numapin_lab.components.build import say
from numapin_lab.errors import LabError
from numapin_lab.lifecycle import LabFolder
from numapin_lab.requirements import check

_DESCRIPTION = (
    "Campaigns, most of them on a real one-node Kubernetes of their own. docs/lab.md describes "
    "them. The exit status is 1 after a violation."
)


class Command(NamedTuple):
    """A campaign: what it does, its options, and whether a run finds nothing.

    `has_lab`: it takes a lab's folder.
    """

    meaning: str
    add_options: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], bool]
    has_lab: bool = True


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one campaign; returns the exit status: 0 if nothing was found."""
    options = build_parser().parse_args(arguments)
    # SIGTERM is treated like Ctrl-C: the demo takes its lab down.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return 0 if COMMANDS[options.command].run(options) else 1
    except (LabError, OSError) as error:
        say(f"{options.command}: {error}")
        return 1
    except KeyboardInterrupt:
        say(f"{options.command}: interrupted")
        if COMMANDS[options.command].has_lab:
            down = f"{sys.executable} -m numapin_lab down --dir {_folder(options)}"
            say(f"{options.command}: remove what was started with: {down}")
        return INTERRUPTED


def build_parser() -> argparse.ArgumentParser:
    """Campaigns and their options."""
    parser = argparse.ArgumentParser(prog="python -m numapin_campaigns", description=_DESCRIPTION)
    commands = parser.add_subparsers(dest="command", required=True, metavar="CAMPAIGN")
    for name, one in COMMANDS.items():
        command = commands.add_parser(
            name,
            help=one.meaning.partition("\n")[0],
            description=one.meaning,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        one.add_options(command)
        if one.has_lab:
            add_folder(command)
    return parser


def _folder(options: argparse.Namespace) -> Path:
    return Path(options.dir).absolute()


def _checked(options: argparse.Namespace, *, pods: bool = False, vm: bool = False) -> LabFolder:
    """The lab's folder, on a machine that can have such a lab."""
    path = _folder(options)
    check(f"{sys.executable} -m numapin_campaigns {options.command} --dir {path}", pods=pods)
    return LabFolder(path, pods=pods, vm=vm)


def _demo_options(parser: argparse.ArgumentParser) -> None:
    frame.add_keep(parser)
    chaos.add_from_source(parser)


def _demo(options: argparse.Namespace) -> bool:
    folder = _checked(options, pods=not options.from_source)
    demo.run(folder, f"{sys.executable} -m numapin_lab", options.keep)
    return True


def _chaos_options(parser: argparse.ArgumentParser) -> None:
    frame.add_options(parser)
    chaos.add_options(parser)
    moves.add_options(parser)


def _chaos(options: argparse.Namespace) -> bool:
    if options.moves:
        folder = _checked(options, vm=True)
        return moves.MOVES.carry_out(folder, moves.MOVES.planned(options), options.keep)
    folder = _checked(options, pods=not options.from_source)
    return chaos.CHAOS.carry_out(folder, chaos.CHAOS.planned(options), options.keep)


def _told(options: argparse.Namespace) -> bool:
    folder = _checked(options, vm=True)
    return told.TOLD.carry_out(folder, told.TOLD.plan(0, options), options.keep)


def _upgrade(options: argparse.Namespace) -> bool:
    folder, plan = _checked(options), upgrade.UPGRADE.plan(0, options)
    return upgrade.UPGRADE.carry_out(folder, plan, options.keep)


COMMANDS = {
    "demo": Command("apply the examples and check what the kernel does", _demo_options, _demo),
    "chaos": Command(
        "kill parts and overwrite cpusets under load, and watch the kernel", _chaos_options, _chaos
    ),
    "told": Command(str(told.__doc__), told.add_options, _told),
    "upgrade": Command(str(upgrade.__doc__), upgrade.add_options, _upgrade),
    "hostile": Command(str(hostile.__doc__), hostile.add_options, hostile.run, has_lab=False),
    "holding": Command(str(holding.__doc__), holding.add_options, holding.run, has_lab=False),
    "histories": Command(
        str(histories.__doc__), histories.add_options, histories.run, has_lab=False
    ),
    "exhaustive": Command(str(worlds.__doc__), worlds.add_options, worlds.run, has_lab=False),
}

if __name__ == "__main__":
    sys.exit(main())
