"""The command line of `numapin plan`."""

from argparse import ArgumentParser
from typing import Final

from numapin_cli.arguments import add_input_arguments, add_server_arguments
from numapin_cli.subcommand import Subcommand, run_of

_DESCRIPTION: Final = """\
Show what the operator would write: its own decision, about nodes that files describe. Nothing is
changed, and no cluster is needed.

With --live the cluster itself is read, and -f applied to it. Only nodes that would change, or on
which the policy cannot be put in force, are drawn.

With a CpuPolicy and Pods alone, they are planned on one machine (--machine or --root), which has
labels that the policy selects. Without a Node there is no capacity, so that a policy that says
nothing of reserved CPUs reserves one.

With Nodes, every one of them is planned: the policy that governs it, its reservation, the pods
that are bound to it, the labels of their Namespaces, and the hardware, the containers and the
refusals of its NodeAssignment. --cluster takes what a cluster has; what -f gives is applied to it.

Pods are placed in the order in which they were bound, then the others in the order of the files.
A pod without metadata.uid that names no node counts as bound to --node, or to the only node.

An edit is shown on all nodes, as they are when it has reached the last one. If the operator changes
a few nodes at a time (rollout.maxConcurrent), standard error says how many.

Of a Deployment, ReplicaSet, StatefulSet, DaemonSet, Job or CronJob in -f the pods are planned that
its controller creates, all at once; of a DaemonSet one for each Node that matches; of a CronJob
those of one run. They replace those that the cluster has of it. Objects of other kinds, such as
those in the output of helm template, are left out, which is said on standard error.

Of the pods that -f gives it says why they share CPUs, or which container does; which prefer a NUMA
node (placement.numaNodes); which have memory on NUMA nodes without CPUs; which request devices
that the kubelet has not chosen yet; and which run virtual machines of KubeVirt with dedicated CPUs.

The exit status is 1 if the policy cannot be put in force on a node.
"""

_EPILOG: Final = """\
examples:
  numapin plan -f policy.yaml -f pods.yaml
  helm template shop ./chart | numapin plan -f policy.yaml -f -
  numapin plan --live -f edited-policy.yaml -o diff                 what this edit would change
  kubectl get nodes,ns,pods,cpupol,nodeasg,nodereports,nodetopologies -A -o json > now.json
  numapin plan --cluster now.json -f edited-policy.yaml -o diff     what this edit would change
  numapin plan --cluster now.json -f pod.yaml --node worker-1       what this pod would get there
"""


def _add_arguments(parser: ArgumentParser) -> None:
    parser.epilog = _EPILOG
    add_input_arguments(parser)
    parser.add_argument(
        "--live", action="store_true", help="read the cluster itself in place of --cluster"
    )
    add_server_arguments(parser)
    parser.add_argument("--node", metavar="NAME", help="plan only this node, and pods bound to it")
    parser.add_argument(
        "-o",
        "--output",
        choices=("text", "json", "diff"),
        default="text",
        help="tables and a drawing; each node's decision in JSON; or how each NodeAssignment's spec"
        " would change (default: text)",
    )


PLAN: Final = Subcommand(
    name="plan",
    summary="show what the operator would write, by files or by a cluster",
    description=_DESCRIPTION,
    add_arguments=_add_arguments,
    run=run_of("numapin_cli.commands.plan"),
)
