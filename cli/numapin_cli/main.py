"""The `numapin` command, also installed as `kubectl-numapin`: parse arguments, run, report."""

import os
import sys
from argparse import (
    Action,
    ArgumentError,
    ArgumentParser,
    Namespace,
    RawDescriptionHelpFormatter,
)
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final, NoReturn

from numapin_cli.node_modes.release_usage import RELEASE
from numapin_cli.node_modes.usage import PAUSE, RESUME
from numapin_cli.shells.command_line import option_names, subcommands
from numapin_cli.shells.completion import COMPLETION
from numapin_cli.subcommand import CommandError, Subcommand
from numapin_cli.usage.check import CHECK
from numapin_cli.usage.explain import EXPLAIN
from numapin_cli.usage.live.get import GET
from numapin_cli.usage.live.serve import SERVE
from numapin_cli.usage.live.status import STATUS
from numapin_cli.usage.migrate import MIGRATE
from numapin_cli.usage.plan import PLAN
from numapin_cli.usage.report import REPORT
from numapin_cli.usage.simulate import SIMULATE
from numapin_cli.usage.topology import TOPOLOGY
from numapin_daemon.version import VERSION

SUBCOMMANDS: Final[tuple[Subcommand, ...]] = (
    TOPOLOGY,
    SIMULATE,
    PLAN,
    MIGRATE,
    STATUS,
    GET,
    EXPLAIN,
    SERVE,
    CHECK,
    PAUSE,
    RESUME,
    RELEASE,
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


class _Parser(ArgumentParser):
    """Names what is like a wrong command or value, in place of all that there are."""

    def _check_value(self, action: Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            near = _did_you_mean(str(value), map(str, action.choices))
            raise ArgumentError(action, f"invalid choice: {value!r}; {near}")


def build_parser(program: str, subcommands: Sequence[Subcommand]) -> ArgumentParser:
    """Declare the whole command line; `program` is the name that usage texts show."""
    parser = _Parser(prog=program, description=_DESCRIPTION, allow_abbrev=False)
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
    options = _parse(program, arguments)
    try:
        status = _run(options)
        sys.stdout.flush()
    except CommandError as problem:
        for text in problem.texts:
            print(f"{program}: error: {text}", file=sys.stderr)
        return problem.exit_status
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        # The reader (head, less) has seen enough; the interpreter must not flush to it again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _BROKEN_PIPE
    return status


def _parse(program: str, arguments: Sequence[str] | None) -> Namespace:
    """Read the command line; what is wrong with it ends the program."""
    parser = build_parser(program, SUBCOMMANDS)
    options, unknown = parser.parse_known_args(arguments)
    if unknown:
        _refuse(subcommands(parser)[options.subcommand.name], unknown[0])
    return options


def _refuse(parser: ArgumentParser, word: str) -> NoReturn:
    if not word.startswith("-"):
        parser.error(f"unexpected argument: {word}")
    wrong = word.partition("=")[0]
    near = _did_you_mean(wrong, [one.text for one in option_names(parser)])
    parser.error(f"there is no option {wrong}; {near}")


def _did_you_mean(wrong: str, known: Iterable[str]) -> str:
    """Names like a wrong one; what compares names is imported only for an error."""
    from numapin_cli.near_names import did_you_mean  # noqa: PLC0415

    return did_you_mean(wrong, known)


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
