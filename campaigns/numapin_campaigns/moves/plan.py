"""What a chaos run with moves does, decided by a seed: changes, and the faults during each."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from numapin_campaigns.faults.registry import ALL
from numapin_campaigns.frame.plan import Fault, Needs, PlannedFault, possible
from numapin_campaigns.parts.part import AGENTS, API_SERVER, KUBELET

ONE: Final = "1"
EXCLUSIVE_AMOUNTS: Final = ("2",)
OTHER_AMOUNTS: Final = (*EXCLUSIVE_AMOUNTS, "1500m")
"""A resize to one of these is followed by one to `ONE`: a CPU more, and no exclusive ones."""

LEAST_ROUNDS: Final = 8
"""Fewer do not hold each kind of fault and of change."""

FAULTS_OF_ROUNDS: Final = (3, 2)
"""So many faults for so many rounds."""

MOST_DELAY_SECONDS: Final = 1.5
MOST_DOWN_SECONDS: Final = 6.0


def _in_order(fault: Fault) -> tuple[bool, bool, int, list[int]]:
    """Kills of numapin's parts first, of one and then of several."""
    places = [PARTS.index(part) for part in fault.parts]
    return not set(fault.parts) <= set(AGENTS), fault.stops, len(places), places


PARTS: Final = (*AGENTS, API_SERVER, KUBELET)
FAULTS: Final = tuple(sorted(possible(ALL, (Needs.TOGETHER,)), key=_in_order))


class Stage(IntEnum):
    """How far a change has come, by the NodeAssignment; a change may skip some."""

    ASKED = 0
    """The policy is edited, or the resize is asked for."""
    BEGUN = 1
    """CPUs will leave the container."""
    ANNOUNCED = 2
    """It is written when they leave."""
    LEAVING = 3
    """The spec is without them, and the report not yet."""
    DECIDED = 4
    """The spec is as it stays."""


@dataclass(frozen=True, slots=True)
class Move:
    """The CPUs of the other NUMA node are reserved: every container has to go to this one."""

    to: int

    def __str__(self) -> str:
        return f"move to NUMA node {self.to}"


@dataclass(frozen=True, slots=True)
class Resize:
    """The second container with exclusive CPUs gets this amount."""

    cpu: str

    def __str__(self) -> str:
        return f"resize to {self.cpu}"


Change = Move | Resize


@dataclass(frozen=True, slots=True)
class Round:
    """One change, and the faults while it is made."""

    number: int
    change: Change
    faults: tuple[PlannedFault, ...]


@dataclass(frozen=True, slots=True)
class MovesPlan:
    """A run: one round after the other. The containers are on NUMA node 1 before the first."""

    seed: int
    rounds: tuple[Round, ...]


def make_moves_plan(seed: int, rounds: int) -> MovesPlan:
    """Decide a run. Equal input gives equal output; each kind of fault is there at least once.

    Raises:
        ValueError: fewer than `LEAST_ROUNDS` rounds.
    """
    if rounds < LEAST_ROUNDS:
        raise ValueError(f"{rounds} rounds are too few: {LEAST_ROUNDS} hold each kind of fault")
    source = random.Random(seed)
    changes = list(_changes(source, rounds))
    faults = list(_faults(source, rounds))
    return MovesPlan(
        seed,
        tuple(
            Round(number, change, tuple(faults[number - 1 :: rounds]))
            for number, change in enumerate(changes, 1)
        ),
    )


def _changes(source: random.Random, rounds: int) -> Iterator[Change]:
    """Moves there and back, and among them resizes there and back, to each amount at least once."""
    to = 1
    for amount in _amounts_and_moves(source, rounds):
        if amount:
            yield Resize(amount)
        else:
            to = 1 - to
            yield Move(to)


def _amounts_and_moves(source: random.Random, rounds: int) -> list[str]:
    """The amounts of resizes in order; a move is empty.

    No move is between a resize to 1500m and the one back: the memory of the container stays bound
    meanwhile, and where every CPU beside it is reserved it gets none.
    """
    pairs = max(len(OTHER_AMOUNTS), rounds // 5)
    amounts = [*OTHER_AMOUNTS, *source.choices(OTHER_AMOUNTS, k=pairs - len(OTHER_AMOUNTS))]
    moves = rounds - 2 * pairs
    parts: list[list[str]] = []
    for amount in amounts:
        between = source.randint(0, min(2, moves)) if amount in EXCLUSIVE_AMOUNTS else 0
        moves -= between
        parts.append([amount, *[""] * between, ONE])
    parts += [[""]] * moves
    source.shuffle(parts)
    return [one for part in parts for one in part]


def _faults(source: random.Random, rounds: int) -> Iterator[PlannedFault]:
    many, each = FAULTS_OF_ROUNDS
    kinds = list(FAULTS)
    kinds += source.choices(FAULTS, k=rounds * many // each - len(kinds))
    source.shuffle(kinds)
    for kind in kinds:
        stage = source.choice(list(Stage))
        delay = round(source.uniform(0.0, MOST_DELAY_SECONDS), 2)
        times = (round(source.uniform(0.0, MOST_DOWN_SECONDS), 2) for _ in kind.parts)
        yield PlannedFault(kind, stage, tuple(times), delay)
