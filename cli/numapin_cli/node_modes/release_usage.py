"""The command line of `numapin release`."""

from argparse import ArgumentParser, ArgumentTypeError
from typing import Final

from numapin_api.names import NODE_MODE_ANNOTATION, RELEASED
from numapin_cli.arguments import add_server_arguments, seconds
from numapin_cli.subcommand import NOT_WELL, Subcommand, run_of

_DESCRIPTION: Final = f"""\
Have nodes give back every CPU set, NUMA node and CFS limit that numapin has set, a few at a time,
before it is removed or in order to take it off some nodes. Containers go on running, on all CPUs.

Each Node gets the annotation {NODE_MODE_ANNOTATION}: {RELEASED}, so that no policy selects it any
more. The operator then releases the node after releaseDelay of its policy. If no operator does
within 15 s, this command writes the same. The enforcer of the node gives everything back and
reports that; then the NodeAssignment is deleted. After a node that is not released no further one
is begun, and it is said what is left.

With --pods no enforcer is asked: a pod on each node, which has the root folder of the host, runs
numapin-enforcer --release. For nodes on which numapin's pods are gone. An enforcer that still runs
there refuses it.

It needs the rights to list, get, patch and delete nodeassignments, to get and delete nodereports
and nodetopologies, and to list, get and patch nodes; with --pods, to create, get and delete pods
of their namespace, which must admit such pods.

exit status:
  0    all are released
  1    the cluster cannot be read, or a node does not exist
  2    wrong usage
  {NOT_WELL}    some nodes are not released; go on with the same command
  130  interrupted: what has begun goes on without this command
"""

_EPILOG: Final = """\
examples:
  numapin release --all                       before numapin is removed
  numapin release --node worker-1             numapin resume worker-1 ends that
  numapin release --all --at-once 50
  numapin release --all --pods --image registry.example.com/numapin-enforcer:0.1.0
  numapin release --node worker-1 --pods --image IMAGE -- --cri-socket=/run/crio/crio.sock
"""


def _positive(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text) > 0):
        raise ArgumentTypeError(f"{text!r} is no number of nodes, at least 1")
    return int(text)


def _add_arguments(parser: ArgumentParser) -> None:
    parser.epilog = _EPILOG
    parser.add_argument(
        "--node", action="append", default=[], metavar="NAME", help="a node; may be repeated"
    )
    parser.add_argument("--all", action="store_true", help="every node with a NodeAssignment")
    parser.add_argument(
        "-l", "--selector", default="", metavar="LABELS", help="with --all: of nodes like these"
    )
    parser.add_argument(
        "--at-once",
        type=_positive,
        default=10,
        metavar="NUMBER",
        help="how many nodes at the same time (default: 10)",
    )
    parser.add_argument(
        "--timeout",
        type=seconds,
        default=120.0,
        metavar="DURATION",
        help="how long nothing may happen on a node, or its pod may take (default: 2m)",
    )
    _add_pod_arguments(parser)
    add_server_arguments(parser)


def _add_pod_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--pods", action="store_true", help="by a pod on each node; with --all on every node"
    )
    parser.add_argument("--image", default="", help="the image of the enforcer, for --pods")
    parser.add_argument(
        "-n",
        "--namespace",
        default="kube-system",
        metavar="NAME",
        help="the namespace of these pods (default: kube-system)",
    )
    parser.add_argument(
        "flags",
        nargs="*",
        metavar="FLAG",
        help="after --: flags of the enforcer, such as paths of the host that are not the usual"
        " ones",
    )


RELEASE: Final = Subcommand(
    name="release",
    summary="have nodes give back everything, before numapin is removed",
    description=_DESCRIPTION,
    add_arguments=_add_arguments,
    run=run_of("numapin_cli.node_modes.release"),
)
