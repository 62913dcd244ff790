"""What runs on exclusive CPUs besides their containers, as an enforcer sees it."""

from typing import Annotated, Final, Literal

from pydantic import Field

from numapin_api.cpuset import CpuSet
from numapin_api.meta.wire import WireModel

MAX_DISTURBANCES: Final = 16
MAX_DISTURBANCE_NAME: Final = 64


class Disturbance(WireModel):
    """Tasks or interrupts of one name that come to exclusive CPUs again and again."""

    kind: Literal["Task", "KernelThread", "Interrupt"] = Field(
        description="Task: a program. KernelThread: a thread of the kernel, by the part of its "
        "name before the slash. Interrupt: by its name in /proc/interrupts."
    )
    name: Annotated[str, Field(min_length=1, max_length=MAX_DISTURBANCE_NAME)] = Field(
        description="Its name. A task may give itself any."
    )
    cpus: CpuSet = Field(description="The exclusive CPUs where it was seen.")
