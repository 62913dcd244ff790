"""Resources that the runtime is sent, and errors that it answers with."""

from pathlib import Path

from numapin_api.cpuset import CpuSet, MemSet
from numapin_enforcer.runtime.interface import (
    ContainerResources,
    CriRefusedError,
    CriUnavailableError,
)

ONE = ContainerResources(CpuSet.parse("1"))
TWO = ContainerResources(CpuSet.parse("2"), MemSet.parse("0"))
AWAY = CriUnavailableError(Path("/run/x.sock"), "no answer in 5 s")
REFUSED = CriRefusedError("UNKNOWN: half done")
