"""What is left of a pod that is gone: the Events that numapin has posted about it.

The API server keeps Events for an hour by default.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from numapin_api.conditions.reasons import REFUSAL_REASONS, Reason
from numapin_api.names import GROUP
from numapin_cli.live.reader import Reader
from numapin_client.errors import ForbiddenError
from numapin_client.resources import EVENTS, Json, Key
from numapin_operator.observe.node_status import json_object

_PLACED: Final = frozenset({Reason.CPUS_ASSIGNED, Reason.CPUS_RESIZED, Reason.CPUS_MOVED})


@dataclass(frozen=True, slots=True)
class Told:
    """An Event of numapin about a pod.

    Attributes:
        time: when it was posted last, as the API server writes times.
        reason: one word.
        note: the sentence.
    """

    time: str
    reason: str
    note: str

    @property
    def is_refusal(self) -> bool:
        """Whether it says that the pod was refused."""
        return self.reason in REFUSAL_REASONS

    @property
    def is_placement(self) -> bool:
        """Whether it says that the pod had CPUs of its own."""
        return self.reason in _PLACED


async def told_about(reader: Reader, pod: Key) -> Sequence[Told]:
    """Events of numapin about a pod, the oldest first; none if there are none, or none may be read.

    Raises:
        ClientError: the API server does not answer.
    """
    selector = f"regarding.kind=Pod,regarding.name={pod.name}"
    try:
        listed = await reader.each(EVENTS, _told, namespace=pod.namespace, field_selector=selector)
    except ForbiddenError:
        return ()
    return sorted((one for one in listed if one is not None), key=lambda one: one.time)


def _told(event: Json) -> Told | None:
    """Read an Event; None if it is not numapin's."""
    if not str(event.get("reportingController") or "").startswith(GROUP):
        return None
    time = json_object(event, "series").get("lastObservedTime") or event.get("eventTime")
    return Told(str(time or ""), str(event.get("reason") or ""), str(event.get("note") or ""))
