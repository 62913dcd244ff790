"""Arguments that several subcommands have, and the documents that they write."""

import json
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

import yaml

from numapin_cli.subcommand import UsageError


def add_files_argument(parser: ArgumentParser, *names: str, text: str) -> None:
    """Declare an argument that names a file each time it is given."""
    parser.add_argument(*names, action="append", type=Path, default=[], metavar="FILE", help=text)


def add_answer_arguments(parser: ArgumentParser, wide: str) -> None:
    """Declare `-o`, `--watch` and `--cluster`.

    Args:
        parser: takes them.
        wide: what `-o wide` shows.
    """
    parser.add_argument(
        "-o",
        "--output",
        choices=("text", "wide", "json", "yaml"),
        default="text",
        help=f"text that fits 80 columns; wide: {wide}; or documents (default: text)",
    )
    parser.add_argument(
        "-w", "--watch", action="store_true", help="answer again after every change, until Ctrl-C"
    )
    text = "read this dump or report instead of an API server; may be repeated"
    add_files_argument(parser, "--cluster", text=text)


def reads_files(options: Namespace) -> bool:
    """Whether files are read instead of an API server.

    Raises:
        UsageError: files cannot be watched.
    """
    if options.cluster and options.watch:
        raise UsageError("--watch needs an API server; leave out --cluster")
    return bool(options.cluster)


def count(text: str) -> int:
    """A number of things, at least 0.

    Raises:
        ValueError: the text is something else.
    """
    if not text.isascii() or not text.isdecimal():
        raise ValueError(text)
    return int(text)


def document(content: dict[str, Any], output: str) -> str:
    """A document for scripts: `json` or `yaml`."""
    if output == "json":
        return json.dumps(content, indent=2) + "\n"
    return str(yaml.safe_dump(content, sort_keys=False, width=100))
