"""Read and write the annotation of Nodes that pauses or releases them."""

from typing import Final

from numapin_api.names import NODE_MODE_ANNOTATION
from numapin_cli.live.reader import Reader
from numapin_cli.near_names import did_you_mean
from numapin_cli.subcommand import CommandError
from numapin_client.client import ApiClient
from numapin_client.errors import NotFoundError
from numapin_client.resources import NODES, Json, Key

FIELD_MANAGER: Final = "numapin-cli"


async def set_mode(client: ApiClient, node: str, mode: str | None) -> None:
    """Set the annotation of a Node, or take it away.

    Raises:
        NotFoundError: there is no such Node.
        ClientError: it cannot be written.
    """
    patch = {"metadata": {"annotations": {NODE_MODE_ANNOTATION: mode}}}
    await client.merge_patch(NODES, Key(node), patch, field_manager=FIELD_MANAGER)


async def no_such_node(reader: Reader, node: str) -> CommandError:
    """That there is no Node of a name, with those like it."""
    known = {key.name for key in await reader.names_if_allowed(NODES)}
    return CommandError(f"there is no node {node}; {did_you_mean(node, known)}")


async def check_exist(reader: Reader, nodes: list[str]) -> None:
    """Raises CommandError for a name that no Node has: nothing is written then."""
    for node in nodes:
        try:
            await reader.client.get(NODES, Key(node))
        except NotFoundError as error:
            raise await no_such_node(reader, node) from error


async def marked(reader: Reader) -> list[str]:
    """The names of the Nodes that have the annotation, sorted."""
    found = await reader.metadata(NODES, _marked)
    return sorted(name for name in found if name)


def _marked(metadata: Json) -> str:
    has = NODE_MODE_ANNOTATION in (metadata.get("annotations") or {})
    return str(metadata["name"]) if has else ""
