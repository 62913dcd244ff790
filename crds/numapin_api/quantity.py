"""Amounts: Kubernetes' notation (1500m, 2Gi, 1e3), and how messages show bytes and counts."""

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from fractions import Fraction

_BINARY: Final = {f"{unit}i": 1024**power for power, unit in enumerate("KMGTPE", start=1)}
_POWERS_OF_TEN: Final = {
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
}
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


def parse_quantity(value: object) -> "Fraction":
    """Read a quantity exactly; numbers that a YAML file left unquoted are quantities too.

    Source: Kubernetes, apimachinery, `resource.Quantity`.

    Raises:
        QuantityError: anything else.
    """
    return _fraction(_text(value))


def whole(value: object) -> int:
    """A quantity as whole units, rounded up, as Kubernetes does (`Quantity.Value`)."""
    numerator, denominator = _parse(_text(value))
    return -(-numerator // denominator)


def millis(value: object) -> int:
    """A quantity as thousandths, rounded up, as Kubernetes does (`Quantity.MilliValue`)."""
    numerator, denominator = _parse(_text(value))
    return -(-1000 * numerator // denominator)


def format_bytes(size_bytes: int, *, down: bool = False) -> str:
    """A number of bytes in the largest binary unit that fits, with at most one decimal: 1.5 GiB.

    `down` cuts other decimals off, so that what is free is never shown as more.
    """
    size, unit = float(size_bytes), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if size < 1024:
            break
        size, unit = size / 1024, larger
    size = int(size * 10) / 10 if down else size
    return f"{size:.1f}".removesuffix(".0") + f" {unit}"


_MOST_BYTES: Final = (1 << 63) - 1
"""Of a quantity of the API server. A file may request more, which no float holds."""


def exact_bytes(size_bytes: int) -> str:
    """As `format_bytes` if that loses nothing, else in the largest unit that does: 6244 MiB."""
    if size_bytes <= _MOST_BYTES:
        shown = format_bytes(size_bytes)
        if whole(shown.removesuffix("B").replace(" ", "")) == size_bytes:
            return shown
    amount = as_quantity(size_bytes)
    number = amount.rstrip("KMGTPEi")
    return f"{number} {amount.removeprefix(number)}B"


def as_quantity(size_bytes: int) -> str:
    """A number of bytes as a quantity that has just this value, in the largest unit: 6244Mi."""
    suffix = ""
    for larger in _BINARY:
        if not size_bytes or size_bytes % 1024:
            break
        size_bytes, suffix = size_bytes // 1024, larger
    return f"{size_bytes}{suffix}"


def plural(count: int, noun: str) -> str:
    """A count with its noun: `1 CPU`, `2 CPUs`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _text(value: object) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _HUGE:
        value = str(value)
    if isinstance(value, str) and len(value) <= _LONGEST:
        return value
    raise QuantityError(value)


@lru_cache(maxsize=8192)
def _fraction(text: str) -> "Fraction":
    from fractions import Fraction  # noqa: PLC0415 - 0.4 MiB that no enforcer needs

    return Fraction(*_parse(text))


@lru_cache(maxsize=8192)
def _parse(text: str) -> tuple[int, int]:
    """Numerator and denominator."""
    found = _QUANTITY.fullmatch(text)
    if found is None:
        raise QuantityError(text)
    units, _, decimals = found["number"].partition(".")
    numerator, suffix = int(units + decimals), found["suffix"] or ""
    if suffix in _BINARY:
        return numerator * _BINARY[suffix], 10 ** len(decimals)
    power = int(found["exponent"] or _POWERS_OF_TEN[suffix]) - len(decimals)
    return (numerator * 10**power, 1) if power >= 0 else (numerator, 10**-power)
