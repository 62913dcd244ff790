"""The `numapin` command, also installed as `kubectl-numapin`: parse arguments, run, report."""

import os
import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from numapin_cli.commands.completion import COMPLETION
from numapin_cli.commands.explain import EXPLAIN
from numapin_cli.commands.get import GET
from numapin_cli.commands.migrate import MIGRATE
from numapin_cli.commands.plan import PLAN
from numapin_cli.commands.report import REPORT
from numapin_cli.commands.simulate import SIMULATE
from numapin_cli.commands.topology import TOPOLOGY
from numapin_cli.subcommand import CommandError, Subcommand
from numapin_daemon.version import VERSION

SUBCOMMANDS: Final[tuple[Subcommand, ...]] = (
    TOPOLOGY,
    SIMULATE,
    PLAN,
    MIGRATE,
    GET,
    EXPLAIN,
    REPORT,
    COMPLETION,
)
"""Every subcommand, in the order in which the help lists them."""

_DESCRIPTION: Final = "Exclusive CPUs and nearby memory for Kubernetes containers."
_KUBECTL_PREFIX: Final = "kubectl-"
_INTERRUPTED: Final = 130
_BROKEN_PIPE: Final = 141
_DRAWS_WITH: Final = "rich"
_NOT_INSTALLED: Final = (
    "a drawing needs the package rich: pip install 'numapin[cli]'; -o json works without"
)


def build_parser(program: str, subcommands: Sequence[Subcommand]) -> ArgumentParser:
    """Declare the whole command line; `program` is the name that usage texts show."""
    parser = ArgumentParser(prog=program, description=_DESCRIPTION, allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"numapin {VERSION}")
    commands = parser.add_subparsers(metavar="COMMAND", title="commands", required=True)
    for subcommand in subcommands:
        added = commands.add_parser(
            subcommand.name,
            help=subcommand.summary,
            description=subcommand.description,
            formatter_class=RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        subcommand.add_arguments(added)
        added.set_defaults(subcommand=subcommand, parser=parser)
    return parser


def program_name(executable: str) -> str:
    """How the user called us: `kubectl numapin` where kubectl found us as its plug-in."""
    return "kubectl numapin" if Path(executable).name.startswith(_KUBECTL_PREFIX) else "numapin"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one subcommand; returns the exit status (0 done, 1 failed, 2 wrong usage)."""
    program = program_name(sys.argv[0])
    options = build_parser(program, SUBCOMMANDS).parse_args(arguments)
    try:
        status = _run(options)
        sys.stdout.flush()
    except CommandError as problem:
        print(f"{program}: error: {problem}", file=sys.stderr)
        return problem.exit_status
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        # The reader (head, less) has seen enough; the interpreter must not flush to it again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _BROKEN_PIPE
    return status


def complete_for_kubectl() -> int:
    """Answer kubectl, which completes `kubectl numapin` by a program of this name.

    Source: kubectl, "Extend kubectl with plugins", `kubectl_complete-`.
    """
    return main(["completion", "candidates", "--", *sys.argv[1:]])


def _run(options: Namespace) -> int:
    """Run the chosen subcommand.

    Raises:
        CommandError: it failed, or it draws and what it draws with is not installed.
    """
    subcommand: Subcommand = options.subcommand
    try:
        return subcommand.run(options)
    except ModuleNotFoundError as missing:
        if str(missing.name).partition(".")[0] != _DRAWS_WITH:
            raise
        raise CommandError(_NOT_INSTALLED) from missing


if __name__ == "__main__":
    sys.exit(main())
