"""Rows of the kernel's counters."""

from array import array
from collections.abc import Mapping

from numapin_enforcer.telemetry.samples.interrupts import Interrupt


def interrupt(number: str, name: str, counts: Mapping[int, int]) -> Interrupt:
    """A row of /proc/interrupts."""
    return Interrupt(number, name, array("H", counts), array("I", counts.values()))
