"""`numapin report`: what a bug report needs, in one file without secrets."""

import sys
from argparse import ArgumentParser, Namespace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

from numapin_api.names import NAMESPACE
from numapin_api.quantity import format_bytes, plural
from numapin_cli.arguments import count
from numapin_cli.bundle.archive import packed, write_new
from numapin_cli.bundle.collected import README, Collected
from numapin_cli.bundle.from_server import ServerCollector, Wanted
from numapin_cli.bundle.node_files import Places, collect_node
from numapin_cli.live.reader import Reader
from numapin_cli.live.server import add_server_arguments, ask_server
from numapin_cli.subcommand import CommandError, Subcommand
from numapin_client.client import ApiClient
from numapin_daemon.version import VERSION

INCOMPLETE: Final = 3
"""Exit status if the report was written and something could not be collected."""

_STDOUT: Final = "-"

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
  {INCOMPLETE}    written, and something could not be collected, such as the part of the node on
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


def _run(options: Namespace) -> int:
    now, collected = datetime.now(UTC), Collected()
    name = f"numapin-report-{now:%Y%m%d-%H%M%S}"
    file = Path(options.output or f"{name}.tar.gz")
    if options.output != _STDOUT and file.exists():
        raise CommandError(f"{file}: exists already; name another file with -o")
    is_node = collect_node(collected, _places(options))
    unreached = _collect_cluster(options, collected)
    if unreached and not is_node:
        raise CommandError(f"{unreached}; and this machine is no node: nothing can be reported")
    versions = {"numapin": VERSION, "python": sys.version}
    collected.add_json("versions.json", versions, "the version of this command")
    readme = collected.readme(VERSION, f"{now:%Y-%m-%dT%H:%M:%SZ}")
    content = packed({README: readme.encode(), **collected.files}, name, int(now.timestamp()))
    if options.output == _STDOUT:
        sys.stdout.buffer.write(content)
    else:
        write_new(file, content)
    return _say(options, collected, file, len(content))


def _places(options: Namespace) -> Places:
    return Places(options.root, options.cgroup_root, options.kubelet_root_dir)


def _collect_cluster(options: Namespace, collected: Collected) -> str:
    """Add the cluster; returns why it cannot be reached, or nothing."""
    wanted = Wanted(options.namespace, tuple(options.node), options.log_lines, options.log_nodes)
    try:
        ask_server(options, partial(_collect, wanted, collected))
    except CommandError as problem:
        collected.problems.append(f"cluster: {problem}")
        return str(problem)
    return ""


async def _collect(wanted: Wanted, collected: Collected, client: ApiClient) -> None:
    await ServerCollector(Reader(client), wanted, collected).collect()


def _say(options: Namespace, collected: Collected, file: Path, size: int) -> int:
    """Say on standard error what was written; returns the exit status."""
    for problem in collected.problems:
        print(f"not collected: {problem}", file=sys.stderr)
    where = "standard output" if options.output == _STDOUT else str(file)
    files = plural(len(collected.files) + 1, "file")
    print(f"{where}: {files}, {format_bytes(size)}; see {README} in it", file=sys.stderr)
    return INCOMPLETE if collected.problems else 0


REPORT: Final = Subcommand(
    name="report",
    summary="write one file with what a bug report needs, without secrets",
    description=_DESCRIPTION,
    add_arguments=_add_arguments,
    run=_run,
)
