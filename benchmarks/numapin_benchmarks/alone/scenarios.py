"""The ways of keeping others off a service's CPU, each with what it adds to the one before."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

BY_BOOT: Final = "isolcpus"

_KEEP_OFF: Final = {"processes": "KeepOff", "interrupts": "KeepOff"}


@dataclass(frozen=True)
class Scenario:
    """One row of the table.

    Attributes:
        name: of the row.
        busy: whether anything runs beside the service.
        pins: whether cpusets are written as the kubelet's static policy does.
        enforces: whether the enforcer runs, with `spec` added to its assignment.
    """

    name: str
    busy: bool = True
    pins: bool = False
    enforces: bool = False
    spec: Mapping[str, Any] = field(default_factory=dict)


SCENARIOS: Final = (
    Scenario("alone", busy=False),
    Scenario("unpinned"),
    Scenario("kubelet static", pins=True),
    Scenario("Cpuset", enforces=True),
    Scenario("+ processes", enforces=True, spec={"system": {"processes": "KeepOff"}}),
    Scenario("+ interrupts", enforces=True, spec={"system": _KEEP_OFF}),
    Scenario(
        "+ IsolatedPartition",
        enforces=True,
        spec={"system": _KEEP_OFF, "isolation": "IsolatedPartition"},
    ),
    Scenario(BY_BOOT, pins=True),
)
