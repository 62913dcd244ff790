"""What the flags describe that name files with nodes, policies, pods and a machine."""

import sys
from argparse import Namespace
from collections.abc import Iterable
from pathlib import Path

from numapin_api.topology import Topology
from numapin_cli.inputs.described_cluster import DescribedCluster, in_a_cluster, on_a_machine
from numapin_cli.inputs.machines import discover_below, read_machine
from numapin_cli.inputs.objects import Objects, read_objects
from numapin_cli.printable import printable
from numapin_cli.subcommand import CommandError


def read_given(options: Namespace) -> Objects:
    """The objects of the files that are named.

    Args:
        options: with `filename` and `cluster`; `namespace` may be left out.

    Raises:
        CommandError: none is named, or one cannot be used.
    """
    if not options.filename and not options.cluster:
        raise CommandError(
            "nothing is given to plan; name files with -f or --cluster, or add --live"
        )
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
        return in_a_cluster(objects, given_machine(options), options.node)
    return on_a_machine(objects, given_machine(options) or discover_below(Path("/")), options.node)


def given_machine(options: Namespace) -> Topology | None:
    """The machine that is named; None if none is.

    Raises:
        CommandError: it cannot be read.
    """
    if options.machine is not None:
        return read_machine(options.machine)
    return None if options.root is None else discover_below(options.root)
