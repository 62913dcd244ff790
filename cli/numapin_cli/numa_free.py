"""What the NUMA nodes of one node offer and have left: the operator's own count.

It depends on more than the NodeAssignment: on the policy, on what the Node keeps back, and on pods
whose memory is not bound.
"""

from collections.abc import Mapping
from typing import Final

from numapin_cli.asked.objects import FromServer
from numapin_cli.asked.target import NODE, Target
from numapin_cli.inputs.described_cluster import observed
from numapin_cli.inputs.objects import Objects
from numapin_cli.live.reader import Reader
from numapin_cli.live.server import said
from numapin_cli.subcommand import CommandError
from numapin_client.errors import ForbiddenError
from numapin_operator.nodes.decide.present import present_machine
from numapin_operator.nodes.picture import picture_of
from numapin_operator.placement import NumaAmounts, promised_amounts

Found = Mapping[int, NumaAmounts]
"""The NUMA nodes by number, with what can be promised there."""

_UNKNOWN: Final = "what NUMA nodes have left is not known"


def in_objects(objects: Objects, node: str) -> tuple[Found, str]:
    """The NUMA nodes of a node, by the objects that the operator would observe.

    Returns:
        The NUMA nodes; none if no policy places pods there. And why they are not known; empty if
        they are.
    """
    try:
        machine = present_machine(picture_of(observed(objects), node))
    except CommandError as error:
        return {}, f"{_UNKNOWN}: {error}"
    return promised_amounts(machine) if machine is not None else {}, ""


async def on_server(reader: Reader, node: str) -> tuple[Found, str]:
    """The same, by what an API server has.

    Raises:
        ClientError: it does not answer.
    """
    try:
        asked = await FromServer(reader, "").asked(Target(NODE, node), 0)
    except ForbiddenError as error:
        return {}, f"{_UNKNOWN}: {said(error)}"
    except CommandError:  # there is a NodeAssignment, and no Node any more
        return {}, ""
    return in_objects(asked.objects, node)
