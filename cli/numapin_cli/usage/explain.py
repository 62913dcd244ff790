"""The command line of `numapin explain`."""

from argparse import ArgumentParser
from typing import Final

from numapin_cli.arguments import (
    add_answer_arguments,
    add_files_argument,
    add_server_arguments,
    count,
)
from numapin_cli.asked.target import FORMS
from numapin_cli.subcommand import Subcommand, run_of

_DESCRIPTION: Final = f"""\
Explain a pod, a node or a policy ({FORMS}, or just NAME), or the
pods of a workload (deployment/NAME, statefulset/NAME, daemonset/NAME, job/NAME, cronjob/NAME):

pod      why it did or did not get CPUs of its own, with the planner's numbers; who has the CPUs
         and the memory of its node; and what would help: ending or moving other pods, another
         node, another size, an edit of the policy; and which containers the operator moves first
         (mode Dynamic). A pod whose resize waits is explained in the same way. Each advice is tried
         with the operator's own planner before it is said to help. Nothing is changed.
node     which policy governs it, whether the kernel has what that says, and why not
policy   where it is in force and where not
workload its pods, those first that were refused; if it has none, one as its controller creates it

A pod that is gone is explained by the Events that numapin has posted about it.

A pod need not be on a node: a pending pod, or one of a file (-f), is tried on all nodes. Of a
Deployment, StatefulSet or other workload of a file one pod is tried, as the controller creates it:
pods that the cluster has of the workload stay or have ended first, as its roll-out has it, which
the answer says.

This reads the pod, CpuPolicies, NodeAssignments, NodeReports, NodeTopologies, Nodes, Namespaces,
and the pods of the nodes that are tried.

exit status:
  0    answered; nothing is missing
  1    the cluster or a file cannot be read, or the object does not exist
  2    wrong usage
  3    answered; the pod was refused, or it or its resize waits, or the policy is not in force
  130  interrupted (the way to end --watch)
"""

_EPILOG: Final = """\
examples:
  numapin explain trading-0
  numapin explain -n shop pod/db-1 --watch
  numapin explain node worker-1 -o yaml
  numapin explain -n shop deploy/web
  numapin explain -f pod.yaml                                 on which node would it get CPUs?
  helm template shop ./chart | numapin explain -f -           and the pods of this chart?
  numapin explain shop/db-1 --cluster numapin-report.tar.gz   without the cluster
"""


def _add_arguments(parser: ArgumentParser) -> None:
    parser.epilog = _EPILOG
    parser.add_argument(
        "target", nargs="*", metavar="TARGET", help=f"{FORMS}, deployment/NAME, ..., or NAME"
    )
    parser.add_argument(
        "-n",
        "--namespace",
        default="",
        help="the namespace of the pod, also of those of -f that name none",
    )
    text = "YAML or JSON with Pods or workloads that are not in the cluster; - for standard input"
    add_files_argument(parser, "-f", "--filename", text=text)
    parser.add_argument("--node", default="", metavar="NAME", help="ask only about this node")
    parser.add_argument(
        "--nodes",
        type=count,
        default=20,
        metavar="N",
        help="try at most N other nodes, those with most free CPUs (default: 20)",
    )
    parser.add_argument(
        "--pods",
        type=count,
        default=3,
        metavar="N",
        help="explain at most N pods of a workload, those first that were refused (default: 3)",
    )
    add_answer_arguments(parser, "with all pods of the node")
    add_server_arguments(parser)


EXPLAIN: Final = Subcommand(
    name="explain",
    summary="say why a pod has or lacks CPUs of its own, and what would help",
    description=_DESCRIPTION,
    add_arguments=_add_arguments,
    run=run_of("numapin_cli.commands.explain"),
)
