"""Arguments that several subcommands have."""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from pathlib import Path
from typing import Final

from numapin_api.duration import duration_seconds, is_duration
from numapin_cli.subcommand import UsageError


def add_files_argument(parser: ArgumentParser, *names: str, text: str) -> None:
    """Declare an argument that names a file each time it is given."""
    parser.add_argument(*names, action="append", type=Path, default=[], metavar="FILE", help=text)


DOCUMENTS: Final = ("json", "yaml")
JSONPATH: Final = "jsonpath="


class Outputs(tuple[str, ...]):
    """What `-o` may be; after `jsonpath=` it is any template."""

    __slots__ = ()

    def __contains__(self, value: object) -> bool:
        is_template = isinstance(value, str) and value.startswith(JSONPATH)
        return super().__contains__(JSONPATH if is_template else value)


def is_document(output: str) -> bool:
    """Whether an output is a document for scripts, or what is chosen from one."""
    return output in DOCUMENTS or output.startswith(JSONPATH)


def add_answer_arguments(parser: ArgumentParser, wide: str, *others: str) -> None:
    """Declare `-o`, `--watch` and `--cluster`.

    Args:
        parser: takes them.
        wide: what `-o wide` shows.
        others: what `-o` may be besides.
    """
    parser.add_argument(
        "-o",
        "--output",
        choices=Outputs(("text", "wide", *DOCUMENTS, JSONPATH, *others)),
        metavar="{" + ",".join(("text", "wide", *DOCUMENTS, f"{JSONPATH}TEMPLATE", *others)) + "}",
        default="text",
        help=f"text that fits 80 columns; wide: {wide}; documents; or what a template of kubectl"
        " chooses from one (default: text)",
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


def seconds(text: str) -> float:
    """A duration as kubectl takes it, in seconds.

    Raises:
        ArgumentTypeError: the text is none.
    """
    if not is_duration(text):
        raise ArgumentTypeError(f"{text!r} is no duration; write 90s, 10m or 1h30m")
    return duration_seconds(text)


def add_input_arguments(parser: ArgumentParser) -> None:
    """Declare `-f`, `--cluster`, `--machine` and `--root`."""
    text = (
        "YAML or JSON with CpuPolicies, Pods, workloads (Deployments, StatefulSets, ...), Nodes,"
        " Namespaces, NodeAssignments; other kinds are left out; - for standard input; may be"
        " repeated"
    )
    add_files_argument(parser, "-f", "--filename", text=text)
    text = "of the objects of -f that name none, as helm template prints them (default: default)"
    parser.add_argument("-n", "--namespace", default="", metavar="NAME", help=f"namespace {text}")
    text = "the same kinds as a cluster has them; -f replaces and adds; may be repeated"
    add_files_argument(parser, "--cluster", text=text)
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--machine",
        type=Path,
        metavar="FILE",
        help="machine written by numapin topology -o json; with Nodes, that of each node whose"
        " NodeAssignment has no topology",
    )
    where.add_argument(
        "--root",
        type=Path,
        metavar="DIR",
        help="folder that holds a machine's sys and proc, for the same (default without Nodes: /,"
        " this machine)",
    )


def add_server_arguments(parser: ArgumentParser) -> None:
    """Declare `--kubeconfig` and `--context`."""
    parser.add_argument(
        "--kubeconfig",
        metavar="FILE",
        help="how to reach the API server (default: $KUBECONFIG, the service account in a pod,"
        " ~/.kube/config)",
    )
    parser.add_argument(
        "--context",
        default="",
        metavar="NAME",
        help="the context of the kubeconfig (default: its current one)",
    )
