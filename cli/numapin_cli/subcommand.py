"""A subcommand of `numapin`, and the errors that the user can correct."""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar


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
