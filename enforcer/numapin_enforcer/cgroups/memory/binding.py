"""Binds cgroups to NUMA nodes: what they had before is saved first, and their memory must fit."""

import resource
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Final, Protocol

from numapin_api.cpuset import CpuSet, MemSet
from numapin_daemon import saved_values
from numapin_enforcer.cgroups.errors import CgroupError, error_of
from numapin_enforcer.cgroups.memory.stat_files import read_free
from numapin_enforcer.cgroups.memory.use import (
    NodeMemory,
    check_move,
    parse_huge_stat,
    parse_numa_stat,
)
from numapin_enforcer.cgroups.memory.writes_during_moves import MoveGate
from numapin_enforcer.cgroups.tree import Tree
from numapin_enforcer.cgroups.tree_cache import CgroupFiles
from numapin_enforcer.cgroups.write import Write

FILE_NAME: Final = "mems.json"

MOST_BYTES: Final = 16 * 1024 * 1024
"""Far more than the NUMA nodes of all containers of a node take."""


class MemoryFiles(CgroupFiles, Protocol):
    """A cgroup tree that says where memory is."""

    def read_numa_stat(self, path: str) -> str:
        """The text of `memory.numa_stat`; empty if there is none."""
        ...

    def read_hugetlb_stat(self, path: str) -> str:
        """See the function of this name."""
        ...


class SavedMems:
    """What cgroups asked for before they were bound; each is on disk before it is bound."""

    def __init__(self, state_dir: Path) -> None:
        """Read what earlier processes have saved."""
        self._path = state_dir / FILE_NAME
        self.mems: Mapping[str, MemSet] = saved_values.read(
            self._path,
            _parsed,
            most_bytes=MOST_BYTES,
            damaged="cannot read which NUMA nodes containers had; they stay bound",
        )
        """By cgroup; an empty set is "as the parent"."""

    def add(self, path: str, mems: MemSet) -> None:
        """Save what a cgroup asks for now; what was saved first stays.

        Raises:
            OSError: it could not be saved.
        """
        if path not in self.mems:
            self._save({**self.mems, path: mems})

    def drop(self, paths: Collection[str]) -> None:
        """Forget cgroups that are gone, or have been restored.

        Raises:
            OSError: the file could not be written; nothing was forgotten.
        """
        kept = {path: mems for path, mems in self.mems.items() if path not in paths}
        if kept != self.mems:
            self._save(kept)

    def _save(self, mems: Mapping[str, MemSet]) -> None:
        content = {path: str(one) for path, one in mems.items()}
        saved_values.save(self._path, content)
        self.mems = dict(mems)


class BindingTree:
    """Makes the writes of one batch of memory moves."""

    def __init__(
        self,
        files: MemoryFiles,
        found: SavedMems,
        gate: MoveGate,
        sysfs: Path,
        most_moved_bytes: float,
    ) -> None:
        """Args: `sysfs` says how much memory each NUMA node has free; for the rest see `use`."""
        self._files, self._found, self._gate, self._sysfs = files, found, gate, sysfs
        self._most_moved_bytes = most_moved_bytes

    def read(self) -> Tree:
        """See `CgroupTree`."""
        return self._files.read()

    def read_effective_cpus(self, path: str) -> CpuSet:
        """See `CgroupTree`."""
        return self._files.read_effective_cpus(path)

    def write(self, write: Write) -> None:
        """Make one write; see `CgroupTree`.

        Raises:
            MemoryNotBoundError: what the cgroup has on other NUMA nodes does not fit there, or is
                too much to move.
            CgroupError: what it asks for now could not be saved; then it is not bound.
        """
        if isinstance(write.value, MemSet):
            use = self._use(write.path)
            free = read_free(self._sysfs, sorted(write.value), sorted(use.huge))
            check_move(write.path, write.value, use, free, self._most_moved_bytes)
            self._save(write)
        with self._gate.moving():
            self._files.write(write)

    def _use(self, path: str) -> NodeMemory:
        """What a cgroup has; of one that was bound before nobody knows where its huge pages are."""
        usual = parse_numa_stat(self._files.read_numa_stat(path), resource.getpagesize())
        if path in self._found.mems:
            return NodeMemory(usual)
        return NodeMemory(usual, parse_huge_stat(self._files.read_hugetlb_stat(path)))

    def _save(self, write: Write) -> None:
        if write.path not in self._found.mems:
            try:
                self._found.add(write.path, self._files.read_one(write.path).mems)
            except OSError as error:
                raise _not_saved(write, error) from error


def _not_saved(write: Write, error: OSError) -> CgroupError:
    cause = error_of(write.path, None, error).meaning
    meaning = f"not done: what it had before could not be saved in the state folder: {cause}"
    return CgroupError(write.path, str(write.value), error.errno or 0, meaning)


def _parsed(content: Any) -> dict[str, MemSet]:
    return {str(one): MemSet.parse(mems) for one, mems in content.items()}
