"""Options of a program: a flag, else its NUMAPIN_* variable, else a default."""

import argparse
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, NoReturn

PREFIX: Final = "NUMAPIN_"
BOOLEANS: Final = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


class Address(NamedTuple):
    """An address to listen on; an empty host means every address, port 0 lets the kernel choose."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> "Address":
        """Parse `HOST:PORT`; an IPv6 host is in brackets.

        Raises:
            argparse.ArgumentTypeError: the port is missing or invalid.
        """
        host, colon, port = text.rpartition(":")
        if not colon or not port.isascii() or not port.isdecimal() or int(port) > 65535:
            raise argparse.ArgumentTypeError(f"{text!r} is not HOST:PORT, such as 127.0.0.1:8080")
        return cls(host.strip("[]"), int(port))

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def one_of(words: Collection[str]) -> Callable[[str], str]:
    """The type of an option that accepts certain words.

    Unlike `choices` of argparse, it also checks values from the environment.
    """

    def parse(text: str) -> str:
        if text not in words:
            raise argparse.ArgumentTypeError(f"invalid choice: {text!r} is none of {listed}")
        return text

    listed = ", ".join(words)
    return parse


def seconds_between(least: float, most: float) -> Callable[[str], float]:
    """The type of an option that accepts a number of seconds; both limits are included."""

    def parse(text: str) -> float:
        try:
            seconds = float(text)
        except ValueError:
            seconds = float("nan")
        if not least <= seconds <= most:
            problem = f"{text!r} is not a number of seconds from {least:g} to {most:g}"
            raise argparse.ArgumentTypeError(problem)
        return seconds

    return parse


def number_between(least: float, most: float) -> Callable[[str], float]:
    """The type of an option that accepts a number, whole if both limits are; they are included."""
    whole = isinstance(least, int) and isinstance(most, int)

    def parse(text: str) -> float:
        try:
            number = int(text) if whole else float(text)
        except ValueError:
            number = float("nan")
        if not least <= number <= most:
            kind = "whole number" if whole else "number"
            raise argparse.ArgumentTypeError(f"{text!r} is not a {kind} from {least} to {most}")
        return number

    return parse


@dataclass(frozen=True, slots=True)
class Option:
    """One option.

    Attributes:
        flag: such as `--cri-socket`, which gives the variable NUMAPIN_CRI_SOCKET and the name
            `cri_socket`.
        default: None or an empty text for none; the help shows any other default.
        help: what it means.
        type: converts a text, also the default, to the value; raises
            `argparse.ArgumentTypeError` with the remedy. `bool` makes `--flag` and `--no-flag`.
        metavar: the placeholder of the value in the help.
        also: another variable, of any name, that is used if the first is not set.
    """

    flag: str
    default: object
    help: str
    type: Callable[[str], object] = str
    metavar: str | None = None
    also: str = ""

    @property
    def name(self) -> str:
        """The name of the value."""
        return self.flag.removeprefix("--").replace("-", "_")

    @property
    def variable(self) -> str:
        """The environment variable."""
        return PREFIX + self.name.upper()


class OptionParser:
    """Reads options from the command line and the environment.

    A flag has precedence over a variable. An empty variable counts as not set.
    """

    def __init__(
        self, program: str, environment: Mapping[str, str], *, description: str, epilog: str
    ) -> None:
        """Args: the help shows both texts with their line breaks."""
        self._environment = environment
        self._parser = argparse.ArgumentParser(
            prog=program,
            description=description,
            epilog=epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )

    def add_version(self, text: str) -> None:
        """Add `--version`, which prints this text."""
        self._parser.add_argument("--version", action="version", version=text)

    def add_switch(self, flag: str, help_: str) -> None:
        """Add a flag without a value or a variable; False by default."""
        self._parser.add_argument(flag, action="store_true", help=help_)

    def add(self, *options: Option, group: str = "") -> None:
        """Add options; the help shows them together below the group's title.

        Raises:
            SystemExit: the variable of a `bool` is neither true nor false (2).
        """
        to = self._parser.add_argument_group(group) if group else self._parser
        for option in options:
            if option.type is bool:
                added = to.add_argument(
                    option.flag, action=argparse.BooleanOptionalAction, help=_help(option)
                )
                added.default = self._boolean(option)
            else:
                to.add_argument(
                    option.flag,
                    default=self._default(option),
                    type=option.type,
                    metavar=option.metavar,
                    help=_help(option),
                )

    def parse(self, arguments: Sequence[str] | None) -> dict[str, Any]:
        """Parse arguments, without the program's name; None means those of this process.

        Returns:
            Values by name, such as `cri_socket`; None for an option without a value.

        Raises:
            SystemExit: `--help` and `--version` (0), or an invalid option (2); the reason is on
                standard error.
        """
        return vars(self._parser.parse_args(arguments))

    def fail(self, remedy: str) -> NoReturn:
        """End the program because options contradict each other.

        Raises:
            SystemExit: always (2); the usage and the remedy are on standard error.
        """
        self._parser.error(remedy)

    def _default(self, option: Option) -> str | None:
        """The text of the option if its flag is not given."""
        found = self._environment.get(option.variable)
        if not found and option.also:
            found = self._environment.get(option.also)
        if found:
            return found
        return None if option.default is None else str(option.default)

    def _boolean(self, option: Option) -> bool:
        text = str(self._default(option))
        if text.lower() not in BOOLEANS:
            self.fail(f"{option.variable}: {text!r} is neither true nor false")
        return BOOLEANS[text.lower()]


def _help(option: Option) -> str:
    if option.default is None or option.default == "":
        return option.help
    default = str(option.default)
    shown = default.lower() if option.type is bool else default
    return f"{option.help} (default: {shown.replace('%', '%%')})"
