"""What was found, divided into violations and what is excused. Does no I/O."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

Found = TypeVar("Found")


@dataclass(frozen=True)
class Verdict(Generic[Found]):
    """What was found, divided. An excuse is documented where it is named."""

    violations: tuple[Found, ...] = ()
    excused: tuple[tuple[StrEnum, Found], ...] = ()


def judge(found: Iterable[Found], excuse_of: Callable[[Found], StrEnum | None]) -> Verdict[Found]:
    """Divide what was found by what excuses each of it."""
    violations: list[Found] = []
    excused: list[tuple[StrEnum, Found]] = []
    for one in found:
        excuse = excuse_of(one)
        if excuse is None:
            violations.append(one)
        else:
            excused.append((excuse, one))
    return Verdict(tuple(violations), tuple(excused))
