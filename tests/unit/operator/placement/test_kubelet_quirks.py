"""What the kubelet remembers of a combination; test_distributed compares it with Go's slices."""

import pytest

from numapin_operator.placement.kubelet_quirks import overwritten_choice


@pytest.mark.parametrize(
    ("chosen", "search_stopped", "remembered"),
    [
        ([], False, ()),
        ([3], False, (3,)),
        ([0, 2], False, (0, 2)),
        ([0, 1, 3], False, (0, 1, 3)),
        ([0, 1, 2, 3], False, (0, 1, 2, 5)),
        ([0, 1, 2, 3, 4], True, (0, 1, 2, 3, 4)),
        ([0, 1, 2, 3], True, (0, 1, 2, 4)),
        ([0, 1, 2, 5], True, (0, 1, 2, 5)),
    ],
    ids=["none", "one", "two", "three", "four", "five-stopped", "four-stopped", "last-of-its-kind"],
)
def test_only_slices_with_spare_capacity_are_overwritten(
    chosen: list[int], search_stopped: bool, remembered: tuple[int, ...]
) -> None:
    assert overwritten_choice(chosen, range(6), search_stopped=search_stopped) == remembered


def test_candidates_are_answered_by_their_own_names() -> None:
    names = [10, 30, 50, 70, 90]
    assert overwritten_choice([10, 30, 50, 70], names, search_stopped=False) == (10, 30, 50, 90)
