"""A subcommand of `numapin`, and the errors that the user can correct."""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import ClassVar, Final

NOT_WELL: Final = 3
"""Exit status: answered, and something is missing or is not as it should be."""


class CommandError(Exception):
    """The command cannot be carried out; the text names the place and the remedy."""

    exit_status: ClassVar[int] = 1


class UsageError(CommandError):
    """The command line is wrong."""

    exit_status = 2


@dataclass(frozen=True, slots=True)
class Subcommand:
    """One subcommand; `main` shows, parses and runs it.

    `add_arguments` declares its own flags; `run` does the work and returns the exit status. It
    raises `CommandError` for what the user can correct; other exceptions are faults of numapin.
    """

    name: str
    summary: str
    description: str
    add_arguments: Callable[[ArgumentParser], None]
    run: Callable[[Namespace], int]


def run_of(module: str) -> Callable[[Namespace], int]:
    """The function `run` of a module that is imported only when the subcommand runs.

    What the modules of `commands` need takes half a second to import, which help, completion and
    other subcommands must not wait for.
    """

    def run(options: Namespace) -> int:
        status: int = import_module(module).run(options)
        return status

    return run
