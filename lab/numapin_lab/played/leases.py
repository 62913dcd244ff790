"""A process that renews the Leases of many nodes, as their enforcers do: with the enforcer's code.

    python -m numapin_lab.played.leases KUBECONFIG --first N --nodes N [--tokens FILE]

Killing it is the death of these enforcers, and of nothing else.
"""

import argparse
import asyncio
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from numapin_api import names
from numapin_client.client import ApiClient, connect
from numapin_client.errors import ClientError
from numapin_client.login.kubeconfig import kubeconfig_login
from numapin_client.resources import NODE_ASSIGNMENTS, Key
from numapin_enforcer.status.node_lease import RENEW_SECONDS, NodeLease
from numapin_lab.played.enforcers import node_name
from numapin_lab.played.node_logins import as_nodes, writes_as

PROGRAM = "numapin_lab.played.leases"
AGAIN_SECONDS = 5.0


async def renew(api: ApiClient, node: str) -> None:
    """Renew the Lease of one node until cancelled, starting at a random time of the period."""
    await asyncio.sleep(random.uniform(0, RENEW_SECONDS))
    writes_as.set(node)
    while True:
        try:
            assignment = await api.get(NODE_ASSIGNMENTS, Key(node))
            break
        except ClientError:
            await asyncio.sleep(AGAIN_SECONDS)
    owner = {"metadata": {key: assignment["metadata"][key] for key in ("name", "uid")}}
    lease = Key(node, names.NAMESPACE)
    await NodeLease(api, lease, hung=bool, assignment=lambda: owner).run()


async def play(options: argparse.Namespace) -> None:
    """Play until killed."""
    login = as_nodes(kubeconfig_login(str(options.kubeconfig)), options.tokens)
    async with connect(login) as api, asyncio.TaskGroup() as tasks:
        for number in range(options.first, options.first + options.nodes):
            node = node_name(number)
            tasks.create_task(renew(api, node), name=f"Lease of {node}")


@contextmanager
def renewed(
    kubeconfig: Path, log: Path, first: int, nodes: int, tokens: Path | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Run this program for some nodes during the context; yields its process."""
    command = [sys.executable, "-m", PROGRAM, str(kubeconfig), f"--first={first}"]
    command += [f"--nodes={nodes}", *([f"--tokens={tokens}"] if tokens else [])]
    with log.open("ab") as file:
        environment = {**os.environ, "KUBECONFIG": ""}
        process = subprocess.Popen(command, stdout=file, stderr=file, env=environment)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def main() -> None:
    """Read the command line and play."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("kubeconfig", type=Path)
    parser.add_argument("--first", type=int, default=0, help="number of the first node")
    parser.add_argument("--nodes", type=int, required=True, help="how many nodes")
    parser.add_argument("--tokens", type=Path, help="a file of `write_tokens`")
    with suppress(KeyboardInterrupt):
        asyncio.run(play(parser.parse_args()))


if __name__ == "__main__":
    main()
