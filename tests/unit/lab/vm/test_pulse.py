"""A virtual machine stands still if it does not answer, or a CPU takes no timer interrupt."""

from pathlib import Path

from numapin_lab.vm.node_machine import NodeMachine
from numapin_lab.vm.pulse import STILL_SECONDS, Pulse, timer_interrupts

PRINTED = """           CPU0       CPU1       CPU3
LOC:       1200         34          7   Local timer interrupts
"""


def pulse() -> Pulse:
    return Pulse(NodeMachine(Path("lab/vm"), Path("run"), ()))


def test_the_interrupts_of_each_cpu_that_is_online_are_read() -> None:
    assert timer_interrupts(PRINTED) == {"CPU0": 1200, "CPU1": 34, "CPU3": 7}


def test_a_cpu_without_interrupts_for_long_stands_still() -> None:
    seen = pulse()
    assert seen.late({"CPU0": 1, "CPU1": 5}, 0.0) == ""
    assert seen.late({"CPU0": 2, "CPU1": 5}, STILL_SECONDS - 1) == ""
    assert (
        seen.late({"CPU0": 3, "CPU1": 5}, STILL_SECONDS) == "CPU1 had no timer interrupt for 45 s"
    )


def test_a_cpu_that_was_offline_is_looked_at_from_then_on() -> None:
    seen = pulse()
    assert seen.late({"CPU0": 1, "CPU1": 5}, 0.0) == ""
    assert seen.late({"CPU0": 2}, 30.0) == ""
    assert seen.late({"CPU0": 3, "CPU1": 5}, 60.0) == ""
    assert seen.late({"CPU0": 4, "CPU1": 5}, 100.0) == ""
    assert seen.late({"CPU0": 5, "CPU1": 6}, 110.0) == ""


def test_a_machine_that_does_not_run_has_no_problem() -> None:
    assert pulse().problem() == ""
