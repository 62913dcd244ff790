"""Amounts: Kubernetes' notation (1500m, 2Gi, 1e3), and how messages show bytes and counts."""

import re
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import Final

_BINARY: Final = {
    f"{unit}i": Fraction(1024) ** power for power, unit in enumerate("KMGTPE", start=1)
}
_DECIMAL: Final = {
    unit: Fraction(10) ** power
    for unit, power in {
        "n": -9,
        "u": -6,
        "m": -3,
        "": 0,
        "k": 3,
        "M": 6,
        "G": 9,
        "T": 12,
        "P": 15,
        "E": 18,
    }.items()
}
_SUFFIXES: Final = _BINARY | _DECIMAL
_LONGEST: Final = 128
"""Characters of a quantity; the API server writes at most about 40."""

_HUGE: Final = 1e64
_QUANTITY: Final = re.compile(
    r"(?P<number>[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))"
    r"(?:[eE](?P<exponent>[+-]?[0-9]{1,3})|(?P<suffix>[KMGTPE]i|[numkMGTPE]?))",
    re.ASCII,
)


class QuantityError(ValueError):
    """A value is not a Kubernetes quantity."""

    def __init__(self, value: object) -> None:
        huge = isinstance(value, int) and value.bit_length() > 1024
        shown = "a number of so many digits" if huge else f"{value!r:.80}"
        super().__init__(f"{shown} is not a quantity; write it like 2, 500m, 1.5Gi or 64M")
        self.value = value


def parse_quantity(value: object) -> Fraction:
    """Read a quantity exactly; numbers that a YAML file left unquoted are quantities too.

    Source: Kubernetes, apimachinery, `resource.Quantity`.

    Raises:
        QuantityError: anything else.
    """
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _HUGE:
        value = str(value)
    if isinstance(value, str) and len(value) <= _LONGEST:
        return _parse(value)
    raise QuantityError(value)


def whole(value: object) -> int:
    """A quantity as whole units, rounded up, as Kubernetes does (`Quantity.Value`)."""
    return ceil(parse_quantity(value))


def millis(value: object) -> int:
    """A quantity as thousandths, rounded up, as Kubernetes does (`Quantity.MilliValue`)."""
    return ceil(parse_quantity(value) * 1000)


def format_bytes(size_bytes: int) -> str:
    """A number of bytes in the largest binary unit that fits, with at most one decimal: 1.5 GiB."""
    size, unit = float(size_bytes), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{size:.1f}".removesuffix(".0") + f" {unit}"


def plural(count: int, noun: str) -> str:
    """A count with its noun: `1 CPU`, `2 CPUs`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


@lru_cache(maxsize=8192)
def _parse(text: str) -> Fraction:
    found = _QUANTITY.fullmatch(text)
    if found is None:
        raise QuantityError(text)
    number = Fraction(found["number"])
    if found["exponent"]:
        return number * Fraction(10) ** int(found["exponent"])
    return number * _SUFFIXES[found["suffix"] or ""]
