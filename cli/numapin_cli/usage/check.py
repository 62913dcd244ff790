"""The command line of `numapin check`."""

from argparse import ArgumentParser, ArgumentTypeError
from typing import Final

from numapin_api.names import NAMESPACE
from numapin_cli.arguments import add_server_arguments
from numapin_cli.subcommand import Subcommand, run_of

MOST_SECONDS: Final = 300.0
_FORMS: Final = "pod/NAME or node/NAME"

_DESCRIPTION: Final = """\
Measure for some seconds what runs on the exclusive CPUs of a node, or of the containers of a pod,
besides these containers: tasks of the host and of the kernel by name, interrupts by number and
name, how often tasks were switched, how long threads of the containers waited for a CPU, and how
often they were moved to another one.

This reads the page /cpus of the node's enforcer several times, through the API server, and
compares. The enforcer must run with --cpu-metrics (manifests/components/cpu-metrics, or
cpuMetrics.enabled of the chart). Nothing is started on the node, and nothing is changed. It needs
the rights to get the pod, and to list pods and get pods/proxy in numapin's namespace.

A task counts for a CPU if it was last there at two reads in a row; one that ends sooner, or moves
about, may be missed, while the time of all other tasks together is counted by the kernel.

exit status:
  0    measured; nothing disturbed the containers
  1    the cluster or the node's enforcer cannot be read, or the object does not exist
  2    wrong usage
  3    measured; something did: on one CPU, tasks with more than 0.1 % of its time, more than one
       interrupt of a device in a second; or others with more than 1 % of the container's CPUs
  130  interrupted
"""

_EPILOG: Final = """\
examples:
  numapin check node/worker-1
  numapin check -n shop pod/db-1 --seconds 30
  numapin check shop/db-1 -o json
"""


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = float("nan")
    if not 1 <= seconds <= MOST_SECONDS:
        raise ArgumentTypeError(f"{text!r} is not a number of seconds from 1 to {MOST_SECONDS:g}")
    return seconds


def _add_arguments(parser: ArgumentParser) -> None:
    parser.epilog = _EPILOG
    parser.add_argument("target", nargs="+", metavar="TARGET", help=f"{_FORMS}, or NAME")
    parser.add_argument("-n", "--namespace", default="", help="the namespace of the pod")
    parser.add_argument(
        "--seconds",
        type=_seconds,
        default=10.0,
        metavar="SECONDS",
        help=f"how long to measure, from 1 to {MOST_SECONDS:g} (default: 10)",
    )
    parser.add_argument(
        "--numapin-namespace",
        default=NAMESPACE,
        metavar="NAME",
        help=f"the namespace of numapin (default: {NAMESPACE})",
    )
    parser.add_argument(
        "-o",
        "--output",
        choices=("text", "json", "yaml"),
        default="text",
        help="text for people, or a document (default: text)",
    )
    add_server_arguments(parser)


CHECK: Final = Subcommand(
    name="check",
    summary="measure what else runs on the exclusive CPUs of a node or of a pod",
    description=_DESCRIPTION,
    add_arguments=_add_arguments,
    run=run_of("numapin_cli.commands.check"),
)
