"""The command line of `numapin status`."""

from argparse import ArgumentParser
from typing import Final

from numapin_api.names import NAMESPACE
from numapin_cli.arguments import DOCUMENTS, JSONPATH, Outputs, add_server_arguments, seconds
from numapin_cli.subcommand import NOT_WELL, Subcommand, run_of

_DESCRIPTION: Final = f"""\
Show on one screen whether numapin is well in a cluster: the versions of this command, of the API
and of numapin's programs; the policies; how many nodes are in which state; and what needs a person,
each with the command that says more.

--wait waits until all is Ready: every pod of numapin, every policy on each node that it governs,
and every such node. Nodes that are not Ready themselves, or do not run Linux, are not waited for.
Refused pods and different versions are said, and are not waited for either.

This reads CpuPolicies, NodeAssignments, NodeReports, Nodes, and numapin's own pods. What may not be
read is left out, which is said on standard error. Nothing is changed.

exit status:
  0    all is Ready
  1    the cluster cannot be read, or does not have numapin's API
  2    wrong usage
  {NOT_WELL}    something is not Ready; with --wait: still, when --timeout was over
  130  interrupted
"""

_EPILOG: Final = """\
examples:
  numapin status
  numapin status --wait --timeout 10m      after an upgrade, or an edit of a policy
  numapin status -o json
"""


def _add_arguments(parser: ArgumentParser) -> None:
    parser.epilog = _EPILOG
    parser.add_argument("--wait", action="store_true", help="wait until all is Ready")
    parser.add_argument(
        "--timeout",
        type=seconds,
        metavar="DURATION",
        help="how long --wait waits at most, such as 90s or 10m (default: for ever)",
    )
    parser.add_argument(
        "-n",
        "--namespace",
        default=NAMESPACE,
        metavar="NAME",
        help=f"the namespace of numapin (default: {NAMESPACE})",
    )
    parser.add_argument(
        "-o",
        "--output",
        choices=Outputs(("text", *DOCUMENTS, JSONPATH)),
        metavar="{text,json,yaml,jsonpath=TEMPLATE}",
        default="text",
        help="text that fits 80 columns, documents, or what a template chooses (default: text)",
    )
    add_server_arguments(parser)


STATUS: Final = Subcommand(
    name="status",
    summary="say on one screen whether numapin is well in a cluster",
    description=_DESCRIPTION,
    add_arguments=_add_arguments,
    run=run_of("numapin_cli.commands.status"),
)
