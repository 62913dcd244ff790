"""The flags that name files with nodes, policies, pods and a machine, and what they describe."""

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable
from pathlib import Path

from numapin_api.topology import Topology
from numapin_cli.arguments import add_files_argument
from numapin_cli.inputs.described_cluster import DescribedCluster, in_a_cluster, on_a_machine
from numapin_cli.inputs.machines import discover_below, read_machine
from numapin_cli.inputs.objects import Objects, read_objects
from numapin_cli.printable import printable
from numapin_cli.subcommand import CommandError


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


def read_given(options: Namespace) -> Objects:
    """The objects of the files that are named.

    Args:
        options: with `filename` and `cluster`; `namespace` may be left out.

    Raises:
        CommandError: none is named, or one cannot be used.
    """
    if not options.filename and not options.cluster:
        raise CommandError("nothing is given to plan; name files with -f or --cluster")
    namespace: str = getattr(options, "namespace", "")
    objects = read_objects(options.cluster, options.filename, namespace)
    say_notes(objects.notes)
    return objects


def say_notes(notes: Iterable[str]) -> None:
    """Print what was left out or replaced, for people."""
    for note in notes:
        print(printable(note), file=sys.stderr)


def described_by(objects: Objects, options: Namespace) -> DescribedCluster:
    """The cluster that the objects describe, or the one machine if there is no Node.

    Raises:
        CommandError: something is missing, or the machine cannot be read.
    """
    if objects.of("Node"):
        return in_a_cluster(objects, _machine(options), options.node)
    return on_a_machine(objects, _machine(options) or discover_below(Path("/")), options.node)


def _machine(options: Namespace) -> Topology | None:
    if options.machine is not None:
        return read_machine(options.machine)
    return None if options.root is None else discover_below(options.root)
