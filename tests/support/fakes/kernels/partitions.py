"""A model of cpuset partitions below cgroups that are none; refuses what Linux 6.12 refuses.

guest_partitions.py compares it with a real kernel. Not modelled: offline CPUs, and partitions whose
parent is a partition.
"""

import errno
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from numapin_api.cpuset import CpuSet
from numapin_enforcer.cgroups.errors import CgroupRefusedError, CgroupVanishedError
from numapin_enforcer.cgroups.tree import parent
from numapin_enforcer.partitions.plan import MEMBER, UNTOUCHED, File, PartitionWrite, State

INVALID = "(Invalid cpu list in cpuset.cpus.exclusive)"
NOT_PERMITTED = "(Enable partition not permitted)"


@dataclass
class PartitionModel:
    """The files of some cgroups. `is_permitted` is whether the writer has CAP_SYS_ADMIN."""

    cpus: CpuSet
    paths: Iterable[str] = ()
    is_permitted: bool = True
    states: dict[str, State] = field(default_factory=dict)
    writes: list[PartitionWrite] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.states = dict.fromkeys(self.paths, UNTOUCHED)

    def state(self, path: str) -> State:
        if path not in self.states:
            raise CgroupVanishedError(path, None, errno.ENOENT, "the cgroup is gone")
        return self.states[path]

    def isolated(self) -> CpuSet:
        return CpuSet.union(
            one.exclusive for one in self.states.values() if one.partition == "isolated"
        )

    def write(self, write: PartitionWrite) -> None:
        now = self.state(write.path)
        if write.file is File.EXCLUSIVE:
            self._pass_down(write, CpuSet.parse(write.value))
        elif write.value in {MEMBER, now.partition}:
            self.states[write.path] = replace(now, partition=write.value)
        else:
            why = self._why_not(write.path)
            text = f"{write.value} invalid {why}" if why else write.value
            self.states[write.path] = replace(now, partition=text)
        self.writes.append(write)

    def remove(self, path: str) -> None:
        del self.states[path]

    def taken(self) -> CpuSet:
        """The CPUs of all valid partitions."""
        valid = (one for one in self.states.values() if one.partition in {"root", "isolated"})
        return CpuSet.union(one.exclusive for one in valid)

    def _pass_down(self, write: PartitionWrite, cpus: CpuSet) -> None:
        beside = [
            one
            for path, one in self.states.items()
            if path != write.path and parent(path) == parent(write.path)
        ]
        if any(cpus & one.exclusive for one in beside):
            raise CgroupRefusedError(
                write.path, write.value, errno.EINVAL, "not exclusive (EINVAL)"
            )
        gone = self.states[write.path].exclusive - cpus
        self.states[write.path] = replace(self.states[write.path], exclusive=cpus)
        for path, one in self.states.items():
            if path.startswith(f"{write.path}/") and one.exclusive & gone:
                self.states[path] = replace(one, partition=MEMBER)

    def _why_not(self, path: str) -> str:
        if not self.is_permitted:
            return NOT_PERMITTED
        cpus, above = self.states[path].exclusive, parent(path)
        while above:
            cpus &= self.states[above].exclusive
            above = parent(above)
        is_all = self.cpus - self.taken() <= cpus
        return INVALID if not cpus or cpus & self.taken() or is_all else ""
