"""Which words fit at the end of an unfinished command line, by the parser that will read it.

Does no I/O.
"""

from argparse import Action, ArgumentParser
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Word:
    """One word that fits."""

    text: str
    help: str = ""


@dataclass
class CommandLine:
    """An unfinished command line.

    Attributes:
        parser: reads the subcommand, or everything if there is none yet.
        command: the subcommand; empty if there is none yet.
        current: the word at the end, which may be empty.
        prefix: what each word that fits begins with: `--output=`, or nothing.
        option: the option whose value the last word is; None if it is none's.
        given: the values of options so far, by their name in the parsed result.
        positional: the words so far that belong to no option.
    """

    parser: ArgumentParser
    command: str = ""
    current: str = ""
    prefix: str = ""
    option: Action | None = None
    given: dict[str, str] = field(default_factory=dict)
    positional: list[str] = field(default_factory=list)


def read_command_line(parser: ArgumentParser, words: Sequence[str]) -> CommandLine:
    """Read what stands before the last word; errors in it are passed over.

    Args:
        parser: of the whole command.
        words: after the program's name; the last one is unfinished. bash splits `--flag=value` at
            the `=`.
    """
    line = CommandLine(parser)
    *before, line.current = words or [""]
    for word in before:
        _take(line, word)
    if line.current == "=" and line.option is not None:
        line.current = ""
    name, equals, value = line.current.partition("=")
    if equals and line.option is None and (action := _option(line.parser, name)) is not None:
        line.prefix, line.current, line.option = f"{name}=", value, action
    return line


def _take(line: CommandLine, word: str) -> None:
    if line.option is not None:
        if word != "=":
            line.given[line.option.dest], line.option = word, None
        return
    name, equals, value = word.partition("=")
    if word.startswith("-") and (action := _option(line.parser, name)) is not None:
        if equals:
            line.given[action.dest] = value
        elif action.nargs != 0:
            line.option = action
    elif not line.command and word in (commands := subcommands(line.parser)):
        line.command, line.parser = word, commands[word]
    elif not word.startswith("-"):
        line.positional.append(word)


def static_words(line: CommandLine) -> Iterator[Word]:
    """The words that fit whatever the cluster has: commands, flags and choices."""
    if line.option is not None:
        choices = line.option.choices or ()
        found = [Word(f"{line.prefix}{one}") for one in choices]
        yield from (one for one in found if one.text.startswith(line.prefix + line.current))
    elif line.current.startswith("-"):
        yield from option_names(line.parser, line.current)
    elif not line.command:
        for name, parser in subcommands(line.parser).items():
            if name.startswith(line.current):
                yield Word(name, parser.get_default("subcommand").summary)
    else:
        yield from _positional_choices(line)


def _positional_choices(line: CommandLine) -> Iterator[Word]:
    actions = [one for one in _actions(line.parser) if not one.option_strings]
    if line.positional or not actions or not actions[0].choices:
        return
    for choice in actions[0].choices:
        if str(choice).startswith(line.current):
            yield Word(str(choice))


def option_names(parser: ArgumentParser, prefix: str = "") -> Iterator[Word]:
    """The options of a subcommand that begin so, each by its long name if that does."""
    for action in _actions(parser):
        names = [one for one in action.option_strings if one.startswith(prefix)]
        long = [one for one in names if one.startswith("--")]
        yield from (Word(name, _one_line(action.help or "")) for name in (long or names)[:1])


def subcommands(parser: ArgumentParser) -> dict[str, ArgumentParser]:
    """The parsers of the subcommands by name; none if the parser has no subcommands."""
    for action in _actions(parser):
        if not action.option_strings and isinstance(action.choices, dict):
            return {str(name): one for name, one in action.choices.items()}
    return {}


def _option(parser: ArgumentParser, name: str) -> Action | None:
    return next((one for one in _actions(parser) if name in one.option_strings), None)


def _actions(parser: ArgumentParser) -> Sequence[Action]:
    """The flags and arguments; argparse offers no other way to list them."""
    return parser._actions  # noqa: SLF001


def _one_line(text: str) -> str:
    return " ".join(text.split("\n\n", maxsplit=1)[0].split())[:100]
