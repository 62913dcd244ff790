"""`numapin completion`: the script that makes a shell complete commands, flags and names."""

import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterator
from typing import Final

from numapin_cli.shells.command_line import CommandLine, Word, read_command_line, static_words
from numapin_cli.shells.kinds import kind_words, wanted_kinds
from numapin_cli.shells.scripts import SCRIPTS, Directive
from numapin_cli.subcommand import Subcommand, UsageError

CANDIDATES: Final = "candidates"

_FILES: Final = frozenset({"filename", "cluster", "machine", "root", "kubeconfig", "machines"})
"""Flags whose value is a path."""

_DESCRIPTION: Final = """\
Print the script that makes a shell complete commands, flags, and the names of nodes, pods,
policies and namespaces, which it asks the cluster for.

  bash   source <(numapin completion bash)            in ~/.bashrc
  zsh    source <(numapin completion zsh)             in ~/.zshrc, after compinit
  fish   numapin completion fish | source             in ~/.config/fish/config.fish

kubectl completes `kubectl numapin` without a script of its own: it asks kubectl_complete-numapin,
which is installed beside numapin.

exit status: 0 printed, 2 wrong usage
"""


def _shell(text: str) -> str:
    """The name of a shell. The scripts give CANDIDATES in its place, which no help lists."""
    if text in SCRIPTS or text == CANDIDATES:
        return text
    raise ArgumentTypeError(f"invalid choice: {text!r} (choose from {', '.join(SCRIPTS)})")


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "shell",
        type=_shell,
        metavar=f"{{{','.join(SCRIPTS)}}}",
        help="the shell",
    )
    parser.add_argument("words", nargs="*", metavar="WORD", help="(asked by the scripts)")


def _run(options: Namespace) -> int:
    if options.shell != CANDIDATES:
        if options.words:
            raise UsageError(f"{options.words[0]}: give only the name of the shell")
        sys.stdout.write(SCRIPTS[options.shell])
        return 0
    words, directive = complete(options.parser, options.words)
    for word in words:
        sys.stdout.write(f"{word.text}\t{word.help}\n" if word.help else f"{word.text}\n")
    sys.stdout.write(f":{int(directive)}\n")
    return 0


def complete(parser: ArgumentParser, words: list[str]) -> tuple[list[Word], Directive]:
    """The words that fit at the end of a command line, and what a shell does besides.

    Args:
        parser: of the whole command.
        words: after the program's name; the last one is unfinished.
    """
    line = read_command_line(parser, words)
    found = [*static_words(line), *_shells(line)]
    if kinds := wanted_kinds(line):
        from numapin_cli.shells.names import read_names  # noqa: PLC0415

        found += read_names(line, kinds)
    prefixes = list(kind_words(line))
    if prefixes and not found:
        return prefixes, Directive.NO_SPACE | Directive.NO_FILES
    return [*prefixes, *found], _directive(line)


def _shells(line: CommandLine) -> Iterator[Word]:
    if line.command == COMPLETION.name and line.option is None and not line.positional:
        yield from (Word(one) for one in SCRIPTS if one.startswith(line.current))


def _directive(line: CommandLine) -> Directive:
    if line.option is not None and line.option.dest in _FILES:
        return Directive.FILES
    if line.command == "report" and line.option is not None and line.option.dest == "output":
        return Directive.FILES
    if line.command == "simulate" and line.option is None and not line.current.startswith("-"):
        return Directive.FILES
    return Directive.NO_FILES


COMPLETION: Final = Subcommand(
    name="completion",
    summary="print the script that makes bash, zsh or fish complete commands and names",
    description=_DESCRIPTION,
    add_arguments=_add_arguments,
    run=_run,
)
