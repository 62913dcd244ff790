"""A subcommand of `numapin`, and the errors that the user can correct."""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import ClassVar, Final

NOT_WELL: Final = 3
"""Exit status: answered, and something is missing or is not as it should be."""


class CommandError(Exception):
    """The command cannot be carried out; each text names a place and the remedy."""

    exit_status: ClassVar[int] = 1

    def __init__(self, *texts: str) -> None:
        super().__init__(*texts)
        self.texts = texts

    def __str__(self) -> str:
        return "; ".join(self.texts)


class UsageError(CommandError):
    """The command line is wrong."""

    exit_status = 2


class Faults:
    """Collects what is wrong with what a person wrote, so that all of it is said at once."""

    def __init__(self) -> None:
        self._texts: list[str] = []

    @contextmanager
    def collected(self) -> Iterator[None]:
        """Go on after a CommandError, and keep its texts."""
        try:
            yield
        except CommandError as fault:
            self._texts += fault.texts

    def check(self) -> None:
        """Raises CommandError with all that was collected, each text once; nothing if none was."""
        if self._texts:
            raise CommandError(*dict.fromkeys(self._texts))


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
