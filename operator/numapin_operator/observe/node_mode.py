"""What the annotation of a Node says of numapin there. Does no I/O."""

from collections.abc import Mapping
from typing import Any, Final

from numapin_api.names import NODE_MODE_ANNOTATION, PAUSED, RELEASED
from numapin_api.text import cut_text
from numapin_operator.observe.node_status import json_object

TEXT_LENGTH: Final = 64
"""Characters of an unknown value that are shown; an annotation may have 256 KiB."""


def is_released(metadata: Mapping[str, Any]) -> bool:
    """Whether no policy may select the node."""
    return json_object(metadata, "annotations").get(NODE_MODE_ANNOTATION) == RELEASED


def why_paused(metadata: Mapping[str, Any]) -> str:
    """Why nothing may change on the node; empty if it may.

    A text that is neither value is a mistake of somebody who wanted one of them. That a node stays
    as it is can be made good at any time, so it counts as a pause.
    """
    value = json_object(metadata, "annotations").get(NODE_MODE_ANNOTATION)
    if value is None or value == RELEASED:
        return ""
    shown = cut_text(str(value), TEXT_LENGTH)
    why = f"its Node has the annotation {NODE_MODE_ANNOTATION}: {shown}"
    if value == PAUSED:
        return why
    return f"{why}, which is neither {PAUSED} nor {RELEASED} and counts as {PAUSED}"


def node_mode(metadata: Mapping[str, Any]) -> str:
    """`Paused` or `Released`, as the annotation is taken; empty without it."""
    if is_released(metadata):
        return RELEASED
    return PAUSED if why_paused(metadata) else ""
