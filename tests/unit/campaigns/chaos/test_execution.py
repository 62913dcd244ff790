"""No error of what injects faults is lost."""

import threading
from typing import cast

import pytest

from numapin_campaigns.chaos.execution import Driver, Injector, execute
from numapin_campaigns.chaos.plan import make_plan
from numapin_campaigns.faults.kills import KILLS
from numapin_campaigns.frame.plan import PlannedFault
from numapin_campaigns.parts.all_parts import Parts
from numapin_lab.errors import LabError


class Finished:
    """A driver whose pods have all ended when the last fault fails."""

    plan = make_plan(1, 10)
    starts = 10

    def __init__(self) -> None:
        self._asked = threading.Event()

    @property
    def done(self) -> bool:
        """True, and returned when no fault is injected any more."""
        self._asked.set()
        for thread in threading.enumerate():
            if thread.name == "faults":
                thread.join()
        return True

    def inject(self, _: PlannedFault) -> None:
        """Fail while it is asked whether the run is over."""
        self._asked.wait()
        raise LabError("the enforcer did not start")

    def tick(self) -> None:
        """Do nothing."""


def test_a_fault_that_fails_when_all_pods_have_ended_fails_the_run() -> None:
    driver = Finished()
    with pytest.raises(LabError, match="did not start"):
        execute(cast("Driver", driver), [Injector(KILLS, driver.inject)], Parts({}))
