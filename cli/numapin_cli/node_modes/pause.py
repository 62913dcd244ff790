"""`numapin pause` and `numapin resume`: nothing changes on a node, or does so again."""

from argparse import Namespace
from functools import partial

from numapin_cli.live.reader import Reader
from numapin_cli.live.server import ask_server
from numapin_cli.node_modes.marks import check_exist, marked, set_mode
from numapin_cli.subcommand import UsageError
from numapin_client.client import ApiClient


def run(options: Namespace) -> int:
    """Carry it out; returns the exit status."""
    if bool(options.nodes) is options.all:
        raise UsageError("name nodes, or give --all")
    ask_server(options, partial(_set_modes, options))
    return 0


async def _set_modes(options: Namespace, client: ApiClient) -> None:
    reader = Reader(client)
    nodes = await marked(reader) if options.all else list(dict.fromkeys(options.nodes))
    if not options.all:
        await check_exist(reader, nodes)
    for node in nodes:
        await set_mode(client, node, options.mode)
        print(f"node/{node} {'paused' if options.mode else 'resumed'}", flush=True)
    if not nodes:
        print("no node is paused or released")
