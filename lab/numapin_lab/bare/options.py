"""The command line of `lab/bare-machine`."""

from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

RELEASE: Final = "bookworm"
PACKAGES: Final = ("git", "make", "python3", "python3-venv")
MIRROR: Final = "http://deb.debian.org/debian"
TARGETS: Final = ("demo", "test")
DEBOOTSTRAP_REMEDY: Final = "apt-get install -y --no-install-recommends debootstrap"

_DESCRIPTION: Final = f"""\
Run the README's commands from a clone of HEAD on a new Debian {RELEASE} that has this machine's Go,
{", ".join(PACKAGES)}, and nothing else. Run it before each release: it finds
programs that the commands need and the README does not name.

TARGET is a target of the Makefile (default: {" ".join(TARGETS)}). Targets run one after the other,
until one fails. COMMAND runs after them, in the clone, with .venv/bin in PATH. Processes that a
target or COMMAND leaves running are ended.

It needs root, debootstrap ({DEBOOTSTRAP_REMEDY}),
git and Go. Of the environment, only settings of Go, pip, proxies and certificates are passed
through. The exit status is that of the target or COMMAND that failed.
"""

_EPILOG: Final = """\
examples:
  lab/bare-machine
  lab/bare-machine demo --cache ~/.cache/numapin
  lab/bare-machine setup system -- pytest tests/unit
"""


_CACHE_HELP: Final = (
    "keep packages, Go's builds and the lab's components in DIR for the next run; without it the "
    "machine is as bare as a new one"
)


@dataclass(frozen=True)
class Options:
    """What is to be done; see `--help`."""

    targets: tuple[str, ...]
    command: tuple[str, ...]
    folder: Path
    cache: Path | None
    keep: bool
    mirror: str


def parse_options(arguments: Sequence[str]) -> Options:
    """Read the command line.

    Raises:
        SystemExit: `--help` (0), or an argument that makes no sense (2).
    """
    parser = _build_parser()
    at = arguments.index("--") if "--" in arguments else len(arguments)
    found = parser.parse_args(arguments[:at])
    command = tuple(arguments[at + 1 :])
    if at < len(arguments) and not command:
        parser.error("there is no COMMAND after --")
    return Options(
        targets=tuple(found.targets) or (() if command else TARGETS),
        command=command,
        folder=found.dir.absolute(),
        cache=found.cache.expanduser().absolute() if found.cache else None,
        keep=found.keep,
        mirror=found.mirror,
    )


def _build_parser() -> ArgumentParser:
    parser = ArgumentParser(
        prog="lab/bare-machine",
        usage="%(prog)s [OPTION...] [TARGET...] [-- COMMAND...]",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="targets of the Makefile")
    parser.add_argument(
        "--dir",
        type=Path,
        default=Path("/var/tmp"),
        metavar="DIR",
        help="where the machine's folder is made (default: %(default)s)",
    )
    parser.add_argument("--keep", action="store_true", help="leave the machine's folder there")
    parser.add_argument(
        "--cache",
        type=Path,
        metavar="DIR",
        help=_CACHE_HELP,
    )
    mirror_help = "where debootstrap gets Debian from (default: %(default)s)"
    parser.add_argument("--mirror", default=MIRROR, metavar="URL", help=mirror_help)
    return parser
