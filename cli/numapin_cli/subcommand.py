"""What a subcommand of `numapin` is, and how it says that the user must change something."""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar


class CommandError(Exception):
    """What the user asked for cannot be done; the text names the place and the remedy."""

    exit_status: ClassVar[int] = 1


class UsageError(CommandError):
    """The command line itself cannot be right."""

    exit_status = 2


@dataclass(frozen=True, slots=True)
class Subcommand:
    """One subcommand; `main` shows, parses and runs it.

    `add_arguments` declares its own flags; `run` does the work and returns the exit status. It
    raises `CommandError` for what the user can mend and lets everything else pass.
    """

    name: str
    summary: str
    description: str
    add_arguments: Callable[[ArgumentParser], None]
    run: Callable[[Namespace], int]
