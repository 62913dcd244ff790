"""One page of an enforcer: the kernel's counters of its exclusive CPUs at one moment.

Does no I/O.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from numapin_api.cpuset import CpuSet

Count = Annotated[int, Field(ge=0)]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class MalformedPageError(Exception):
    """The enforcer's answer is not such a page."""


class Thread(NamedTuple):
    """What a thread of a container has had of CPUs."""

    id: Count
    waited_seconds: Seconds
    slices: Count
    migrations: Count


class _Row(BaseModel):
    """Fields that a later enforcer adds are passed over."""

    model_config = ConfigDict(frozen=True, alias_generator=to_camel, extra="ignore")


class Container(_Row):
    """A container with exclusive CPUs, and what it has had of them."""

    namespace: str
    pod: str
    pod_uid: str = Field(alias="podUID")
    container: str
    cpus: CpuSet
    ran_seconds: Seconds | None
    threads: tuple[Thread, ...]
    threads_complete: bool

    @property
    def name(self) -> str:
        """The name for people."""
        return f"{self.namespace}/{self.pod} {self.container}"


class Cpu(_Row):
    """What all tasks together have had of a CPU; None if the kernel does not count it."""

    cpu: Count
    ran_seconds: Seconds | None
    slices: Count | None


class Interrupt(_Row):
    """How often an interrupt came, by CPU."""

    number: str
    name: str
    counts: dict[int, Count]


class Task(_Row):
    """A task that ran last on an exclusive CPU, and is not its container's."""

    id: Count
    start_ticks: Count
    name: str
    kernel: bool
    cpu: Count
    ran_seconds: Seconds
    slices: Count


class Page(_Row):
    """The whole page; `taken_seconds` is of a clock that begins with the machine."""

    taken_seconds: Seconds
    containers: tuple[Container, ...]
    cpus: tuple[Cpu, ...]
    interrupts: tuple[Interrupt, ...]
    tasks: tuple[Task, ...]
    tasks_complete: bool

    @classmethod
    def decode(cls, body: Mapping[str, Any]) -> "Page":
        """Read it.

        Raises:
            MalformedPageError: it is none.
        """
        try:
            return cls.model_validate(body)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(map(str, first["loc"]))
            raise MalformedPageError(f"{where}: {first['msg']}") from error


@dataclass(frozen=True, slots=True)
class Group:
    """The containers of one pod that have the same CPUs together: mostly one."""

    pod_uid: str
    cpus: CpuSet
    containers: tuple[Container, ...]

    @property
    def name(self) -> str:
        """The name for people."""
        return ", ".join(one.name for one in self.containers)


def groups_of(page: Page) -> dict[tuple[str, CpuSet], Group]:
    """The containers of a page by their CPUs."""
    found: dict[tuple[str, CpuSet], list[Container]] = {}
    for one in page.containers:
        found.setdefault((one.pod_uid, one.cpus), []).append(one)
    return {key: Group(*key, tuple(group)) for key, group in found.items()}
