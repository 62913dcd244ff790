"""A NodeReport and a NodeTopology, decoded into slim frozen values. Does no I/O."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from numapin_operator.observe.assignments.decode import InvalidPartError
from numapin_operator.observe.assignments.hardware import Hardware, decode_hardware
from numapin_operator.observe.node_status import json_object

Json = Mapping[str, Any]

USED_REPORT: Final = (
    "conditions",
    "observed",
    "enforced",
    "pools",
    "differences",
    "notRunning",
    "freeHugepages",
    "kubeletContainers",
    "claims",
    "unboundMemory",
    "devices",
)
"""The fields of a report that decisions use."""


@dataclass(frozen=True, slots=True)
class ReportView:
    """One NodeReport.

    Attributes:
        status: only the fields of `USED_REPORT`, as JSON: what they mean depends on the
            NodeAssignment.
    """

    name: str
    status: Json = field(repr=False)

    @property
    def is_written(self) -> bool:
        """Whether an enforcer has reported: it then reads assignments with lines."""
        return "observed" in self.status

    @classmethod
    def decode(cls, body: Json) -> "ReportView":
        """Decode a NodeReport."""
        raw = json_object(body, "status")
        return cls(body["metadata"]["name"], {key: raw[key] for key in USED_REPORT if key in raw})


@dataclass(frozen=True, slots=True)
class TopologyView:
    """One NodeTopology.

    Attributes:
        hardware: None until the enforcer has written it.
        problem: why it cannot be used; else None.
    """

    name: str
    hardware: Hardware | None
    problem: str | None = None

    @classmethod
    def decode(cls, body: Json, before: "TopologyView | None" = None) -> "TopologyView":
        """Decode a NodeTopology; `before` is an earlier state, whose hardware is reused."""
        name, known = body["metadata"]["name"], before.hardware if before else None
        try:
            return cls(name, decode_hardware(body.get("status"), known))
        except InvalidPartError as error:
            return cls(name, None, f"NodeTopology: {error}")
        except Exception as error:  # noqa: BLE001 - what one node reports must not stop the others
            return cls(name, None, f"its NodeTopology cannot be read: {error!r}")
