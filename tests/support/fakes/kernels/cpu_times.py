"""CPU times as a test sets them."""

from numapin_api.cpuset import CpuSet


class Times:
    """CPU time of each CPU, and of each cgroup."""

    def __init__(self) -> None:
        self.cpus: dict[int, float] = dict.fromkeys(range(8), 100.0)
        self.used: dict[str, float] = {}

    def cpu_seconds(self) -> dict[int, float]:
        return dict(self.cpus)

    def cgroup_seconds(self, path: str, cpus: CpuSet) -> float | None:
        return self.used.get(path, 0.0)
