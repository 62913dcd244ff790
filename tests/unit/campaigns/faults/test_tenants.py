"""What is made of a tenant's programs, and what is left out."""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self, cast

from numapin_campaigns.faults.io_uring import IO_URING, WORKERS, IoTenants
from numapin_campaigns.faults.kills import KILL_ENFORCER
from numapin_campaigns.faults.tenant import FIFO_HOG, Tenant
from numapin_campaigns.frame.plan import PlannedFault
from numapin_campaigns.tenants.io_threads import IoThreads

PLANNED = PlannedFault(IO_URING, 1)


@dataclass
class Program:
    """Answers until the kernel ends it."""

    answers: int = WORKERS
    done: list[str] = field(default_factory=list)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        self.done.append("end")

    def do(self, command: str) -> None:
        if self.done.count(command) == self.answers:
            raise BrokenPipeError
        self.done.append(command)


def tenants(program: Program) -> IoTenants:
    sleeps, did = list[float](), program.done
    return IoTenants(
        [cast("IoThreads", program)],
        named=lambda: did.count("worker") > 2,
        kill=lambda planned: did.append(planned.fault.name),
        made=Counter(),
        sleep=sleeps.append,
    )


def test_a_program_makes_workers_ends_and_the_enforcer_forgets_them() -> None:
    program = Program()
    made = tenants(program)
    made.inject(PLANNED)
    assert program.done == [*["worker"] * WORKERS, "end", KILL_ENFORCER.name]
    assert made.made == {"IoWorkers": WORKERS, "IoWorkersNamed": WORKERS - 2}
    made.inject(PLANNED)
    assert program.done[-1] == KILL_ENFORCER.name, "there is one program for each fault"


def test_a_program_that_the_kernel_ends_ends_no_run() -> None:
    made = tenants(Program(answers=1))
    made.inject(PLANNED)
    assert made.made["IoWorkers"] == 1
    assert made.made["IoUringEnded"] == WORKERS - 1


def test_a_kernel_that_refuses_io_uring_is_counted() -> None:
    program = Program()
    made = tenants(program)
    made.refuse()
    made.inject(PLANNED)
    assert (program.done, made.made) == ([], {"IoUringRefused": 1})


def test_a_real_time_tenant_waits_for_agents_with_real_time_priority(tmp_path: Path) -> None:
    tenant = Tenant(tmp_path, Counter())
    tenant.inject(PlannedFault(FIFO_HOG, 1))
    assert not tenant.made
