"""Of which kinds names fit at the end of a command line. Does no I/O."""

from collections.abc import Iterator
from typing import Final

from numapin_cli.asked.target import EXPLAINED, NODE, POD, POLICY, WORKLOADS
from numapin_cli.shells.command_line import CommandLine, Word

_TARGETS: Final = {"explain": (POD, NODE, POLICY, *WORKLOADS), "check": (POD, NODE)}
"""What a command is about."""


def wanted_kinds(line: CommandLine) -> tuple[str, ...]:
    """The kinds whose names fit at the end of a command line."""
    if line.option is not None:
        of_option = {"node": (NODE,), "namespace": ("namespace",), "policy": (POLICY,)}
        return of_option.get(line.option.dest, ())
    if line.current.startswith("-"):
        return ()
    if line.command in {"get", "pause", "resume"}:
        return (NODE,)
    return tuple(kind for kind in _of_target(line) if kind in _TARGETS.get(line.command, ()))


def _of_target(line: CommandLine) -> tuple[str, ...]:
    before, slash, _ = line.current.partition("/")
    if line.positional:
        kind = EXPLAINED.get(line.positional[-1].lower(), "")
        return (kind,) if kind and len(line.positional) == 1 else ()
    if slash:
        return (EXPLAINED[before.lower()],) if before.lower() in EXPLAINED else ()
    return (POD, NODE, POLICY) if line.current else ()


def kind_words(line: CommandLine) -> Iterator[Word]:
    """`pod/`, `node/` and other kinds, where one of these may begin."""
    begins = line.option is None and not line.positional and "/" not in line.current
    for kind in _TARGETS.get(line.command, ()) if begins else ():
        if f"{kind}/".startswith(line.current):
            yield Word(f"{kind}/", f"{line.command} a {kind}")
