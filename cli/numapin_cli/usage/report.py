"""The command line of `numapin report`."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Final

from numapin_api.names import NAMESPACE
from numapin_cli.arguments import (
    add_server_arguments,
    count,
)
from numapin_cli.subcommand import NOT_WELL, Subcommand, run_of

_DESCRIPTION: Final = f"""\
Write one file with all that a bug report needs, a gzipped tar archive:

- the policies, NodeAssignments, NodeReports, NodeTopologies, Nodes, Namespaces, pods and
  ResourceClaims of the cluster, with the fields that planning needs;
- versions, Events of numapin, its own pods, and the last lines of their logs;
- on a node: the cgroups of its pods with their CPUs, its hardware, and the kubelet's states.

Environment variables, arguments of other programs, annotations, Secrets, volumes and image names
are left out; README.txt in the archive lists what is in it, what was left out, and what could not
be collected. Names and labels of all pods are in it: look at it before you publish it.

numapin get, explain and plan read it with --cluster.

exit status:
  0    written, and everything was collected
  1    nothing could be collected, or the file cannot be written
  2    wrong usage
  {NOT_WELL}    written, and something could not be collected, such as the part of the node on
       a machine that is none; the messages say what
"""

_EPILOG: Final = """\
examples:
  numapin report
  numapin report --node worker-1 --log-lines 5000 -o worker-1.tar.gz
  sudo numapin report --kubeconfig ~/.kube/config          on a node, with its cgroups
  numapin explain shop/db-1 --cluster numapin-report-20260101-120000.tar.gz
"""


def _add_arguments(parser: ArgumentParser) -> None:
    parser.epilog = _EPILOG
    parser.add_argument(
        "-o",
        "--output",
        default="",
        metavar="FILE",
        help="a file that does not exist yet; - for standard output (default:"
        " numapin-report-DATE-TIME.tar.gz)",
    )
    parser.add_argument(
        "--node",
        action="append",
        default=[],
        metavar="NAME",
        help="only this node, its pods and its logs; may be repeated (default: all nodes)",
    )
    parser.add_argument(
        "--namespace",
        default=NAMESPACE,
        metavar="NAME",
        help=f"the namespace of numapin (default: {NAMESPACE})",
    )
    parser.add_argument(
        "--log-lines",
        type=count,
        default=1000,
        metavar="N",
        help="the last lines of each log; 0 for no logs (default: 1000)",
    )
    parser.add_argument(
        "--log-nodes",
        type=count,
        default=10,
        metavar="N",
        help="read the logs of enforcer and standby of at most N nodes, those that are not Ready"
        " first (default: 10)",
    )
    parser.add_argument(
        "--root",
        type=Path,
        default=Path("/"),
        metavar="DIR",
        help="folder that holds this machine's sys and proc (default: /)",
    )
    parser.add_argument(
        "--cgroup-root",
        default="/",
        metavar="PATH",
        help="the kubelet's cgroupRoot (default: /)",
    )
    parser.add_argument(
        "--kubelet-root-dir",
        type=Path,
        default=Path("/var/lib/kubelet"),
        metavar="DIR",
        help="the kubelet's folder (default: /var/lib/kubelet)",
    )
    add_server_arguments(parser)


REPORT: Final = Subcommand(
    name="report",
    summary="write one file with what a bug report needs, without secrets",
    description=_DESCRIPTION,
    add_arguments=_add_arguments,
    run=run_of("numapin_cli.commands.report"),
)
