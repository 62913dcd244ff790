"""The logins of the enforcers that one process plays: a token for each node, as in its pods.

The admission policies compare an enforcer's token with the node that it writes about, and requests
of the administrator skip them, the roles, and the limits of the priority level. So who plays
enforcers with the administrator's login costs the API server less than they would.
"""

import asyncio
import dataclasses
import json
from collections.abc import Sequence
from contextvars import ContextVar
from pathlib import Path

from numapin_api import names
from numapin_client.client import ApiClient
from numapin_client.login.credentials import Login
from numapin_client.resources import NODES, Json, Key
from numapin_client.transport.connection import Request

LIFETIME_SECONDS = 24 * 3600
AT_ONCE = 8

writes_as: ContextVar[str] = ContextVar("writes_as", default="")
"""The node whose enforcer sends what this task sends; empty for the process's own login."""


class NodeTokens:
    """The token of the node that the present task plays; the process's own one without a node."""

    def __init__(self, own: Login, tokens: dict[str, str]) -> None:
        self._own, self._tokens = own, tokens

    async def authorization(self) -> str | None:
        """The header of the node, or that of the process."""
        if node := writes_as.get():
            return f"Bearer {self._tokens[node]}"
        for one in self._own.credentials:
            if header := await one.authorization():
                return header
        return None

    async def renew(self) -> None:
        """Renew the process's own; tokens of nodes outlive the process."""
        for one in self._own.credentials:
            await one.renew()


def as_nodes(own: Login, tokens: Path | None) -> Login:
    """A login that follows `writes_as`, with the tokens in a file; without one, `own`."""
    if tokens is None:
        return own
    return dataclasses.replace(own, credentials=(NodeTokens(own, json.loads(tokens.read_text())),))


def write_tokens(file: Path, tokens: dict[str, str]) -> None:
    """Write the token of each node into a file that others cannot read."""
    file.touch(mode=0o600)
    file.write_text(json.dumps(tokens))


async def request_tokens(api: ApiClient, nodes: Sequence[str]) -> dict[str, str]:
    """Request a token of the enforcers' account for each node.

    Raises:
        ClientError: the account or a node does not exist.
    """
    limit = asyncio.Semaphore(AT_ONCE)
    account = f"{names.NAMESPACE}/serviceaccounts/{names.ENFORCER_SERVICE_ACCOUNT}"
    path = f"/api/v1/namespaces/{account}/token"

    async def token(node: str) -> str:
        async with limit:
            body = await api.get(NODES, Key(node))
            bound: Json = {"apiVersion": "v1", "kind": "Node", "name": node}
            bound["uid"] = body["metadata"]["uid"]
            spec = {"expirationSeconds": LIFETIME_SECONDS, "boundObjectRef": bound}
            asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
            answer = await api.connection.ask(Request("POST", path, body=asked))
        found: str = answer["status"]["token"]
        return found

    found = await asyncio.gather(*map(token, nodes))
    return dict(zip(nodes, found, strict=True))
