"""Parts are killed (SIGKILL) at each step of a move, on a real node with two NUMA nodes.

`make steps` runs it. It takes minutes, since all that is killed starts again in an emulated guest:
`make test` kills parts at two steps of a move (`test_moves.py`).
"""

import os
from functools import partial

import pytest

from numapin_campaigns.laws.virtual_node import problems
from numapin_campaigns.steps.move import parts_of_move, steps_of_move
from numapin_campaigns.steps.passing import pass_through
from numapin_campaigns.workload.back_and_forth import NAME, BackAndForth
from numapin_lab.lifecycle import LabFolder
from numapin_lab.vm.running_lab import RunningVmLab
from support.real.changing.victims import STEPS, victims
from support.real.virtual_node import vm_up

pytestmark = [
    pytest.mark.timeout(3600),  # for a machine with much else to do
    pytest.mark.run_by("make steps", STEPS in os.environ),
]


@pytest.fixture(scope="module")
def node(vm_lab: LabFolder) -> RunningVmLab:
    """The node with nothing on it."""
    return vm_up(vm_lab)


@pytest.mark.parametrize("killed", victims(), ids="-".join)
def test_whoever_is_killed_at_each_step_of_a_move_the_end_is_right(
    node: RunningVmLab, killed: tuple[str, ...]
) -> None:
    """What is known of a move is in the NodeAssignment: who comes after goes on with it."""
    rounds, parts = BackAndForth(node, "3s"), parts_of_move(node)
    with rounds.followed():
        started = node.container_id(NAME)
        pass_through(node, parts, steps_of_move(node, NAME), partial(rounds.begin, 0), killed)
        rounds.wait(0)
        parts["standby"].kill()
        node.eventually(partial(problems, node), [])
        assert node.container_id(NAME) == started
    found = rounds.result()
    assert found.shared == ()
    assert [len(one.cpus) for one in found.departures] == [1]
    node.clear()
