"""Parts that many pods have in common, kept in memory once.

The pods of one workload have the same containers and mostly the same labels, and a list has them
next to each other; 150,000 pods take most of the operator's memory. Does no I/O.
"""

from collections.abc import Mapping
from functools import lru_cache
from sys import intern
from typing import Final

from numapin_operator.placement import ContainerView

REMEMBERED: Final = 1024
"""Different values of each part that are remembered."""

MAX_SHARED_CONTAINERS: Final = 8
MAX_SHARED_LABELS: Final = 16
"""Larger parts are not remembered, which bounds the memory for what is remembered."""


def shared_containers(containers: tuple[ContainerView, ...]) -> tuple[ContainerView, ...]:
    """Equal containers; the same object as an earlier one if possible."""
    return _containers(containers) if len(containers) <= MAX_SHARED_CONTAINERS else containers


def shared_labels(labels: Mapping[str, str]) -> Mapping[str, str]:
    """Equal labels; the same object as an earlier one if possible, and the same texts."""
    pairs = tuple(labels.items())
    return _labels(pairs) if len(pairs) <= MAX_SHARED_LABELS else dict(pairs)


@lru_cache(maxsize=REMEMBERED)
def _containers(containers: tuple[ContainerView, ...]) -> tuple[ContainerView, ...]:
    return containers


@lru_cache(maxsize=REMEMBERED)
def _labels(pairs: tuple[tuple[str, str], ...]) -> Mapping[str, str]:
    return {intern(key): intern(value) for key, value in pairs}
