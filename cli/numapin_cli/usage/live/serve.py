"""The command line of `numapin serve`."""

from argparse import ArgumentParser
from typing import Final

from numapin_cli.arguments import add_files_argument, add_server_arguments, count
from numapin_cli.subcommand import Subcommand, run_of

PORT: Final = 8390

_DESCRIPTION: Final = """\
Show a cluster as a page in the browser: all nodes at a glance, a node as a machine with who has
what, and a pod's way to its CPUs. The page follows the cluster, and changes nothing in it. With -f
it also shows what these files would change if they were applied, as numapin plan --live says it.

It shows what the login may read, to whoever reaches the address; that is only this machine unless
--address says otherwise. It needs the right to read NodeAssignments, and uses NodeReports,
NodeTopologies, Nodes and CpuPolicies, as the ClusterRole numapin-viewer and view of Nodes allow.

exit status:
  0    never: it serves until it is interrupted
  1    the address cannot be used, there is no login, or a file cannot be read
  2    wrong usage
  130  interrupted
"""

_EPILOG: Final = """\
examples:
  numapin serve
  numapin serve -f edited-policy.yaml                what this edit would change, too
  numapin serve --cluster numapin-report.tar.gz      what a report says
  numapin serve --port 9000 --context production
  numapin serve --address 0.0.0.0 --host numapin.example.com
"""


def _add_arguments(parser: ArgumentParser) -> None:
    parser.epilog = _EPILOG
    parser.add_argument(
        "--address",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="listen on this address of the machine (default: 127.0.0.1)",
    )
    parser.add_argument(
        "--port", type=count, default=PORT, metavar="PORT", help=f"0: any (default: {PORT})"
    )
    parser.add_argument(
        "--host",
        action="append",
        default=[],
        metavar="NAME",
        help="a name under which browsers reach it besides; requests for others are refused; may"
        " be repeated",
    )
    text = "show what these objects, such as an edited policy, would change; may be repeated"
    add_files_argument(parser, "-f", "--filename", text=text)
    text = "show this dump or report instead of an API server; may be repeated"
    add_files_argument(parser, "--cluster", text=text)
    add_server_arguments(parser)


SERVE: Final = Subcommand(
    name="serve",
    summary="show a cluster as a page in the browser",
    description=_DESCRIPTION,
    add_arguments=_add_arguments,
    run=run_of("numapin_page.command"),
)
"""Runs a package that uses this one: `run_of` imports it by its name, and only then."""
