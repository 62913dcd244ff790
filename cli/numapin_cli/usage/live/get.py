"""The command line of `numapin get`."""

from argparse import ArgumentParser
from typing import Final

from numapin_cli.arguments import add_answer_arguments, add_server_arguments
from numapin_cli.subcommand import Subcommand, run_of

ORDERS: Final = ("name", "policy", "exclusive", "free", "refused", "drift", "ready")
"""By what nodes can be sorted."""

_DESCRIPTION: Final = """\
Show which containers have which CPUs and NUMA nodes, by the NodeAssignments of a cluster: what the
operator has decided, and whether the kernel has it.

Without a NODE, there is one line for each node, or for each that -l, --policy and --not-ready
leave; --summary counts them by policy. With NODEs, each one's machine is drawn, with a mark on each
CPU for the container that has it, and what each of its NUMA nodes has left.

This reads NodeAssignments, NodeReports and NodeTopologies, and the names and labels of Nodes if
that is allowed; of a named NODE also the Node, its pods, CpuPolicies and Namespaces. Nothing is
changed.

exit status:
  0    shown
  1    the cluster cannot be read, or a node or a policy does not exist
  2    wrong usage
  130  interrupted (the way to end --watch)
"""

_EPILOG: Final = """\
examples:
  numapin get
  numapin get --summary                            how many nodes are in which state
  numapin get --not-ready --policy latency-critical
  numapin get -l pool=fast,zone!=a --sort free     where is room?
  numapin get --not-ready -o name | xargs kubectl describe
  numapin get worker-1 --watch
  numapin get worker-1 -o yaml
  numapin get --cluster numapin-report.tar.gz      what a report says
"""


def _add_arguments(parser: ArgumentParser) -> None:
    parser.epilog = _EPILOG
    parser.add_argument("nodes", nargs="*", metavar="NODE", help="draw this node (default: list)")
    parser.add_argument(
        "-l",
        "--selector",
        default="",
        metavar="LABELS",
        help="only Nodes with these labels, such as pool=fast,zone in (a,b),!spot",
    )
    parser.add_argument(
        "--policy", default="", metavar="NAME", help="only nodes that this policy governs"
    )
    parser.add_argument(
        "--not-ready", action="store_true", help="only nodes that a policy governs and not Ready"
    )
    parser.add_argument(
        "--sort",
        choices=ORDERS,
        default="name",
        help="the most exclusive or free CPUs, refused pods or reverted changes first; ready: what"
        " is not Ready first (default: name)",
    )
    parser.add_argument("--summary", action="store_true", help="count nodes by policy and state")
    add_answer_arguments(parser, "with more columns", "name")
    add_server_arguments(parser)


GET: Final = Subcommand(
    name="get",
    summary="show which containers have which CPUs on the nodes of a cluster",
    description=_DESCRIPTION,
    add_arguments=_add_arguments,
    run=run_of("numapin_cli.commands.get"),
)
