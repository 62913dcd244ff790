"""The command lines of `numapin pause` and `numapin resume`."""

from argparse import ArgumentParser
from typing import Final

from numapin_api.names import NODE_MODE_ANNOTATION, PAUSED, RELEASED
from numapin_cli.arguments import add_server_arguments
from numapin_cli.subcommand import Subcommand, run_of

_ENDS: Final = """
exit status:
  0    done, also where it was so before
  1    the cluster cannot be read or written, or a Node does not exist
  2    wrong usage
  130  interrupted
"""

_PAUSE: Final = f"""\
Have nothing change on nodes until numapin resume: no container gets or gives back CPUs, no edit of
a policy takes effect, no pod is evicted, and no policy that is deleted releases them. What is in
force stays enforced. New pods run on shared CPUs, and are told so by the Event NodePaused.

This sets the annotation {NODE_MODE_ANNOTATION}: {PAUSED} of the Nodes. It needs the right to get
and patch nodes.
{_ENDS}"""

_RESUME: Final = f"""\
End a pause or a release of nodes: take away the annotation {NODE_MODE_ANNOTATION} of the Nodes. The
operator then plans them again. With --all, of every Node that has it, which needs the right to list
nodes.
{_ENDS}"""


def _add_pause_arguments(parser: ArgumentParser) -> None:
    parser.epilog = "examples:\n  numapin pause worker-1 worker-2\n"
    parser.add_argument("nodes", nargs="+", metavar="NODE", help="the name of a Node")
    parser.set_defaults(mode=PAUSED, all=False)
    add_server_arguments(parser)


def _add_resume_arguments(parser: ArgumentParser) -> None:
    parser.epilog = "examples:\n  numapin resume worker-1\n  numapin resume --all\n"
    parser.add_argument("nodes", nargs="*", metavar="NODE", help="the name of a Node")
    parser.add_argument(
        "--all", action="store_true", help=f"every Node that is {PAUSED} or {RELEASED}"
    )
    parser.set_defaults(mode=None)
    add_server_arguments(parser)


PAUSE: Final = Subcommand(
    name="pause",
    summary="have nothing change on nodes for a while",
    description=_PAUSE,
    add_arguments=_add_pause_arguments,
    run=run_of("numapin_cli.node_modes.pause"),
)

RESUME: Final = Subcommand(
    name="resume",
    summary="end a pause or a release of nodes",
    description=_RESUME,
    add_arguments=_add_resume_arguments,
    run=run_of("numapin_cli.node_modes.pause"),
)
