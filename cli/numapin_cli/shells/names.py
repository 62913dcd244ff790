"""Names of a cluster's objects for completion: quickly, or none."""

import asyncio
import os
from contextlib import suppress
from typing import Final

from numapin_cli.asked.target import NODE, POD, POLICY, WORKLOADS
from numapin_cli.shells.command_line import CommandLine, Word
from numapin_client.client import ApiClient, Source, connect
from numapin_client.errors import ClientError
from numapin_client.login.find import find_login
from numapin_client.resources import (
    CPU_POLICIES,
    NAMESPACES,
    NODES,
    PODS,
    WORKLOAD_RESOURCES,
    Resource,
)
from numapin_client.transport.timeouts import Timeouts

MOST: Final = 1000
"""Names of one resource that are read; more do not help at a prompt."""

QUICK: Final = Timeouts(connect_seconds=2.0, request_seconds=3.0)
"""A person waits at a prompt."""

_RESOURCES: Final = {
    POD: PODS,
    NODE: NODES,
    POLICY: CPU_POLICIES,
    "namespace": NAMESPACES,
    **{kind: WORKLOAD_RESOURCES[name] for kind, name in WORKLOADS.items()},
}


def read_names(line: CommandLine, kinds: tuple[str, ...]) -> list[Word]:
    """The names that fit; none if the cluster does not give them."""
    return asyncio.run(_read(line, kinds))


async def _read(line: CommandLine, kinds: tuple[str, ...]) -> list[Word]:
    with suppress(ClientError, OSError):
        kubeconfig, context = line.given.get("kubeconfig"), line.given.get("context", "")
        login = find_login(kubeconfig, os.environ, context)
        async with connect(login, QUICK, user_agent="numapin-completion") as client:
            namespace = line.given.get("namespace") or login.namespace or "default"
            return [
                word
                for kind in kinds
                for word in await _names(client, _RESOURCES[kind], namespace, line, kind)
            ]
    return []


async def _names(
    client: ApiClient, resource: Resource, namespace: str, line: CommandLine, kind: str
) -> list[Word]:
    before, slash, _ = line.current.partition("/")
    prefix = f"{before}/" if slash and not line.positional else line.prefix
    source = Source(resource, namespace if resource.namespaced else "")
    with suppress(ClientError):
        listed = await client.list_metadata(source, MOST)
        words = (Word(f"{prefix}{one['name']}", kind) for one in listed)
        return [one for one in words if one.text.startswith(_typed(line))]
    return []


def _typed(line: CommandLine) -> str:
    return f"{line.prefix}{line.current}"
