"""`numapin report`: what a bug report needs, in one file without secrets."""

import sys
from argparse import Namespace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

from numapin_api.quantity import format_bytes, plural
from numapin_cli.bundle.archive import packed, write_new
from numapin_cli.bundle.collected import README, Collected
from numapin_cli.bundle.from_server import ServerCollector, Wanted
from numapin_cli.bundle.node_files import Places, collect_node
from numapin_cli.live.reader import Reader
from numapin_cli.live.server import ask_server
from numapin_cli.subcommand import NOT_WELL, CommandError
from numapin_client.client import ApiClient
from numapin_daemon.version import VERSION

_STDOUT: Final = "-"


def run(options: Namespace) -> int:
    """Carry it out; returns the exit status."""
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
    return NOT_WELL if collected.problems else 0
