"""Of which kinds names fit at the end of a command line. Does no I/O."""

from collections.abc import Iterator

from numapin_cli.live.target import KINDS, NODE, POD, POLICY
from numapin_cli.shells.command_line import CommandLine, Word


def wanted_kinds(line: CommandLine) -> tuple[str, ...]:
    """The kinds whose names fit at the end of a command line."""
    if line.option is not None:
        of_option = {"node": (NODE,), "namespace": ("namespace",), "policy": (POLICY,)}
        return of_option.get(line.option.dest, ())
    if line.current.startswith("-"):
        return ()
    if line.command == "get":
        return (NODE,)
    if line.command == "explain":
        return _of_target(line)
    return ()


def _of_target(line: CommandLine) -> tuple[str, ...]:
    before, slash, _ = line.current.partition("/")
    if line.positional:
        kind = KINDS.get(line.positional[-1].lower(), "")
        return (kind,) if kind and len(line.positional) == 1 else ()
    if slash:
        return (KINDS[before.lower()],) if before.lower() in KINDS else ()
    return (POD, NODE, POLICY) if line.current else ()


def kind_words(line: CommandLine) -> Iterator[Word]:
    """`pod/`, `node/` and `policy/`, where one of these may begin."""
    begins = line.option is None and not line.positional and "/" not in line.current
    if line.command == "explain" and begins:
        for kind in (POD, NODE, POLICY):
            if f"{kind}/".startswith(line.current):
                yield Word(f"{kind}/", f"explain a {kind}")
