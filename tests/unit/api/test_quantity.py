"""Kubernetes quantities, and how messages show bytes and counts."""

from fractions import Fraction

import pytest

from numapin_api.quantity import (
    QuantityError,
    as_quantity,
    exact_bytes,
    format_bytes,
    millis,
    parse_quantity,
    plural,
    whole,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2", Fraction(2)),
        (3, Fraction(3)),
        (0.5, Fraction(1, 2)),
        ("1500m", Fraction(3, 2)),
        ("1.5Gi", Fraction(3 << 29)),
        ("64M", Fraction(64_000_000)),
        ("1e3", Fraction(1000)),
        ("12E-1", Fraction(6, 5)),
        ("2E", Fraction(2 * 10**18)),
        ("+.5", Fraction(1, 2)),
        ("5.", Fraction(5)),
        ("100n", Fraction(1, 10**7)),
    ],
)
def test_quantities_are_read_exactly(text: str | float, value: Fraction) -> None:
    assert parse_quantity(text) == value


@pytest.mark.parametrize("text", ["", "Gi", "1 Gi", "1gi", "0x1", "1Zi", "--1", "1e", None, True])
def test_what_is_no_quantity_is_refused_with_an_example(text: object) -> None:
    with pytest.raises(QuantityError, match="write it like 2, 500m"):
        parse_quantity(text)


def test_amounts_are_rounded_up_as_kubernetes_does() -> None:
    assert (whole("100m"), whole("1.5Gi"), millis("0.0001"), millis("2")) == (1, 3 << 29, 1, 2000)


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (64 << 20, "64 MiB"),
        (3 << 29, "1.5 GiB"),
        (2 << 30, "2 GiB"),
        (5 << 40, "5 TiB"),
        (3 << 50, "3072 TiB"),
    ],
)
def test_bytes_are_shown_in_the_largest_unit_that_fits(size_bytes: int, text: str) -> None:
    assert format_bytes(size_bytes) == text


@pytest.mark.parametrize(
    ("size_bytes", "rounded_down", "exact", "quantity"),
    [
        (0, "0 B", "0 B", "0"),
        (1000, "1000 B", "1000 B", "1000"),
        (3 << 29, "1.5 GiB", "1.5 GiB", "1536Mi"),
        (6244 << 20, "6 GiB", "6244 MiB", "6244Mi"),
        (6350 << 20, "6.2 GiB", "6350 MiB", "6350Mi"),
        ((2 << 30) - 1, "1.9 GiB", "2147483647 B", "2147483647"),
        (65529344 << 10, "62.4 GiB", "65529344 KiB", "65529344Ki"),
        (3 << 50, "3072 TiB", "3072 TiB", "3Pi"),
    ],
)
def test_bytes_can_be_shown_without_a_loss(
    size_bytes: int, rounded_down: str, exact: str, quantity: str
) -> None:
    assert format_bytes(size_bytes, down=True) == rounded_down
    assert exact_bytes(size_bytes) == exact
    assert as_quantity(size_bytes) == quantity
    assert whole(quantity) == size_bytes


def test_more_bytes_than_a_float_holds_are_shown_as_they_are() -> None:
    """A pod in a file may request any amount; the message of its refusal says it."""
    assert exact_bytes(1 << 2000) == f"{1 << 1940} EiB"
    assert exact_bytes((1 << 2000) + 1) == f"{(1 << 2000) + 1} B"


def test_a_count_agrees_with_its_noun() -> None:
    assert [plural(count, "CPU") for count in (0, 1, 2)] == ["0 CPUs", "1 CPU", "2 CPUs"]
