"""The command line of `numapin get`."""

from argparse import ArgumentParser
from typing import Final

from numapin_cli.arguments import (
    add_answer_arguments,
    add_server_arguments,
)
from numapin_cli.subcommand import Subcommand, run_of

_DESCRIPTION: Final = """\
Show which containers have which CPUs and NUMA nodes, by the NodeAssignments of a cluster: what the
operator has decided, and whether the kernel has it.

Without a NODE, there is one line for each node. With NODEs, each one's machine is drawn, with a
mark on each CPU for the container that has it, and what each of its NUMA nodes has left.

This reads NodeAssignments, NodeReports and NodeTopologies, and the names of Nodes if that is
allowed; of a named NODE also the Node, its pods, CpuPolicies and Namespaces. Nothing is changed.

exit status:
  0    shown
  1    the cluster cannot be read, or a node does not exist
  2    wrong usage
  130  interrupted (the way to end --watch)
"""

_EPILOG: Final = """\
examples:
  numapin get
  numapin get worker-1 --watch
  numapin get worker-1 -o yaml
  numapin get --cluster numapin-report.tar.gz      what a report says
"""


def _add_arguments(parser: ArgumentParser) -> None:
    parser.epilog = _EPILOG
    parser.add_argument("nodes", nargs="*", metavar="NODE", help="draw this node (default: list)")
    add_answer_arguments(parser, "with more columns")
    add_server_arguments(parser)


GET: Final = Subcommand(
    name="get",
    summary="show which containers have which CPUs on the nodes of a cluster",
    description=_DESCRIPTION,
    add_arguments=_add_arguments,
    run=run_of("numapin_cli.commands.get"),
)
