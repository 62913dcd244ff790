"""Parts are killed (SIGKILL) at each step of a resize on a real kubelet.

The node has two CPUs, one of them reserved. `make steps` kills every choice of parts; otherwise all
three are killed.
"""

from functools import partial

import pytest

from numapin_api.cpuset import CpuSet
from numapin_campaigns.steps.passing import pass_through
from numapin_campaigns.steps.resize import parts_of_resize, resize, steps_of_resize
from numapin_lab.running_lab import RunningLab, eventually
from support.real.changing.resizes import OWN, never_shared, pin_owner
from support.real.changing.victims import victims

EVERYTHING = CpuSet.parse("0-1")

pytestmark = pytest.mark.from_source("it kills the processes of the lab and starts them again")


@pytest.fixture
def pinned(lab: RunningLab) -> RunningLab:
    """`owner` with CPU 1 to itself, and `neighbour` on the other one."""
    pin_owner(lab)
    return lab


def is_listed(lab: RunningLab, wanted: bool) -> bool:
    """Whether the spec gives `owner` CPUs of its own, or (False) does not."""
    assignment = lab.assignment()
    return assignment is not None and bool(assignment.spec.containers) is wanted


@pytest.mark.parametrize("killed", victims())
def test_whoever_is_killed_at_each_step_the_end_is_right(
    pinned: RunningLab, killed: tuple[str, ...]
) -> None:
    lab = pinned
    with never_shared(lab, "owner", "neighbour"):
        for cpu, cpus in (("1500m", EVERYTHING), ("1", OWN)):
            steps = steps_of_resize(lab, "owner", cpu, partial(is_listed, lab, cpus == OWN))
            begin = partial(resize, lab, "owner", cpu)
            pass_through(lab, parts_of_resize(lab), steps, begin, killed)
            eventually(partial(lab.allowed, "owner"), cpus)
            eventually(partial(lab.allowed, "neighbour"), EVERYTHING - cpus or EVERYTHING)
    eventually(lab.reported_exclusive, [True])
