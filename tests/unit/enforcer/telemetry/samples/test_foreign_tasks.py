"""When a container is named for other tasks on its CPUs, and when no more."""

import pytest

from numapin_enforcer.plan.desired import desire
from numapin_enforcer.telemetry.samples.foreign_tasks import (
    LEAST_SECONDS,
    SAMPLES_TO_FORGET,
    SAMPLES_TO_NAME,
    ForeignTasks,
)
from support.fakes.kernels.cpu_times import Times
from support.fakes.manual_clock import ManualClock
from support.values.specs_and_trees import NAMES, NAMING, assigned, machine, spec, tree


class World:
    """An exclusive container on CPUs 4 and 5, and samples of it."""

    def __init__(self) -> None:
        self.times, self.clock = Times(), ManualClock()
        self.foreign = ForeignTasks(self.times, self.clock)
        self.tree = tree(exclusive="4-5")
        self.desired = desire(
            spec(assigned("exclusive", "4-5")), self.tree, NAMING, NAMES, machine()
        )

    def look(self, used_seconds: float, seconds: float = 10.0) -> tuple[str, ...]:
        """A sample after other tasks used so much of CPU 4."""
        self.times.cpus[4] += used_seconds
        self.clock.stand_still(seconds)
        self.foreign.look(self.tree, self.desired)
        return self.foreign.found


@pytest.fixture
def world() -> World:
    made = World()
    made.look(0.0)
    return made


def test_one_sample_names_nobody_and_one_without_any_forgets_nobody(world: World) -> None:
    named = [world.look(5.0) for _ in range(SAMPLES_TO_NAME + 1)]
    assert named == [*[()] * (SAMPLES_TO_NAME - 1), ("d/p/exclusive",), ("d/p/exclusive",)]
    quiet = [world.look(0.0) for _ in range(SAMPLES_TO_FORGET)]
    assert quiet == [*[("d/p/exclusive",)] * (SAMPLES_TO_FORGET - 1), ()]


def test_tasks_that_come_and_go_in_every_other_sample_change_nothing(world: World) -> None:
    assert {world.look(5.0 * (number % 2)) for number in range(20)} == {()}


def test_a_resync_right_after_another_one_is_no_sample(world: World) -> None:
    world.look(5.0)
    assert world.look(5.0, LEAST_SECONDS / 2) == ()


def test_a_container_that_is_exclusive_no_more_is_forgotten(world: World) -> None:
    for _ in range(SAMPLES_TO_NAME):
        world.look(5.0)
    world.desired = desire(spec(), world.tree, NAMING, NAMES, machine())
    assert world.look(5.0) == ()
