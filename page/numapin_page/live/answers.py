"""What the page asks for one pod or one node, and not for all: read when it is asked."""

import asyncio
import time
from typing import Any, Final, Protocol

from numapin_api.names import NODE_ASSIGNMENT_KIND
from numapin_cli.advice.answer import Answerer
from numapin_cli.asked.objects import Asked, FromFiles, FromServer, node_of
from numapin_cli.asked.target import POD, Target
from numapin_cli.inputs.objects import Objects
from numapin_cli.live.node_state import NodeState
from numapin_cli.live.reader import Reader
from numapin_cli.numa_free import Found, in_objects, on_server
from numapin_client.client import ApiClient
from numapin_page.views.pod_page import pod_page

Json = dict[str, Any]

_NODES: Final = 3
"""Other nodes on which a refused pod is tried."""


class Answers(Protocol):
    """Answers about one pod or one node."""

    async def pod(self, namespace: str, name: str) -> Json:
        """A pod.

        Raises:
            ClientError: the API server does not answer, or refuses.
            CommandError: there is no such pod, or an object cannot be read.
        """

    async def amounts(self, node: str) -> tuple[Found, str]:
        """What the NUMA nodes of a node have left by the operator's count, or why not.

        Raises:
            ClientError: the API server does not answer.
        """


class ServerAnswers:
    """Answers from an API server; see `Answers`."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client
        self._one = asyncio.Semaphore(1)

    async def pod(self, namespace: str, name: str) -> Json:
        """See `Answers`. One at a time: what would help takes many plans to find."""
        async with self._one:
            source = FromServer(Reader(self._client), namespace)
            asked = await source.asked(Target(POD, name, namespace), _NODES)
            return await asyncio.to_thread(_answered, asked)

    async def amounts(self, node: str) -> tuple[Found, str]:
        """See `Answers`."""
        return await on_server(Reader(self._client), node)


class FileAnswers:
    """Answers from files; see `Answers`."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    async def pod(self, namespace: str, name: str) -> Json:
        """See `Answers`."""
        asked = FromFiles(self._objects).asked(Target(POD, name, namespace), _NODES)
        return await asyncio.to_thread(_answered, asked)

    async def amounts(self, node: str) -> tuple[Found, str]:
        """See `Answers`."""
        return in_objects(self._objects, node) if node in self._objects.of("Node") else ({}, "")


def _answered(asked: Asked) -> Json:
    explained = Answerer(asked, now=time.time()).answer()
    node = node_of(asked.manifest)
    found = asked.objects.of(NODE_ASSIGNMENT_KIND).get(node)
    state = NodeState.decode(found.content) if found else NodeState(node)
    if asked.told:
        return {"explanation": explained.to_json(), "steps": []}
    return pod_page(asked.manifest.content, explained, state)
