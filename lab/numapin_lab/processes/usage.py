"""What the kernel reports a process to use: memory in MiB, CPU time in seconds.

Every function raises `ProcessLookupError` for a process that is gone or has ended.
"""

import os
from pathlib import Path


def resident_mib(pid: int) -> float:
    """Its memory in RAM now. Source: proc_pid_status(5), VmRSS."""
    return _kib(pid, "status", "VmRSS") / 1024


def peak_mib(pid: int) -> float:
    """The most memory it had in RAM at any time. Source: proc_pid_status(5), VmHWM."""
    return _kib(pid, "status", "VmHWM") / 1024


def private_mib(pid: int) -> float:
    """Its memory that no other process shares. Source: proc_pid_smaps_rollup(5)."""
    return sum(_kib(pid, "smaps_rollup", f"Private_{kind}") for kind in ("Clean", "Dirty")) / 1024


def cpu_seconds(pid: int) -> float:
    """CPU time it has used so far, in user mode and in the kernel."""
    return sum(cpu_times(pid))


def cpu_times(pid: int) -> tuple[float, float]:
    """CPU time in user mode and in the kernel. Source: proc_pid_stat(5), fields 3, 14 and 15.

    Field 2 may hold spaces.
    """
    fields = _read(pid, "stat").rpartition(")")[2].split()
    if fields[0] in "ZX":
        raise ProcessLookupError(f"process {pid} has ended")
    ticks = os.sysconf("SC_CLK_TCK")
    return int(fields[11]) / ticks, int(fields[12]) / ticks


def _kib(pid: int, file: str, name: str) -> int:
    for line in _read(pid, file).splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1])
    raise ProcessLookupError(f"process {pid} has ended")  # one without memory


def _read(pid: int, file: str) -> str:
    try:
        return Path(f"/proc/{pid}/{file}").read_text()
    except (FileNotFoundError, ProcessLookupError) as error:
        raise ProcessLookupError(f"there is no process {pid}") from error
