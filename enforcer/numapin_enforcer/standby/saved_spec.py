"""What must be enforced, by the copy of the assignment that the enforcer saved on the node."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from numapin_api.cpuset import CpuSet, MemSet
from numapin_enforcer.assignment.copy_file import CopyFile, LocalCopyError

LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SavedContainer:
    """One container; see `AssignedContainer`."""

    pod_uid: str
    namespace: str
    pod: str
    container: str
    cpus: CpuSet
    mems: MemSet
    exclusive: bool


@dataclass(frozen=True, slots=True)
class SavedPool:
    """The shared pool; see `SharedPool`."""

    shared: CpuSet


@dataclass(frozen=True)
class SavedAssignment:
    """A spec that is enforced; see `AssignedSpec`."""

    pools: SavedPool
    containers: tuple[SavedContainer, ...]

    @cached_property
    def exclusive_cpus(self) -> CpuSet:
        """The CPUs of all exclusive containers."""
        return CpuSet.union(one.cpus for one in self.containers if one.exclusive)


class SavedSpec:
    """The last accepted spec as the enforcer left it on the node; read again when it changed.

    The enforcer saves what its models have accepted, and the file has a checksum. So it is not
    validated again: the models would double this process's memory.
    """

    def __init__(self, copy: CopyFile) -> None:
        self._copy = copy
        self._seen: tuple[int, int] | None = None
        self._spec: SavedAssignment | None = None

    def spec(self) -> SavedAssignment | None:
        """What must be in force; None if nothing must, or the copy is not usable."""
        try:
            found = self._copy.path.stat()
        except FileNotFoundError:
            self._seen = self._spec = None
            return None
        seen = (found.st_ino, found.st_mtime_ns)
        if seen != self._seen:
            self._seen, self._spec = seen, self._read()
        return self._spec

    def _read(self) -> SavedAssignment | None:
        try:
            saved = self._copy.read()
            return self._parse(saved["spec"]) if saved is not None else None
        except LocalCopyError as error:
            LOG.warning("the local copy of the assignment is unusable", extra={"error": error})
            return None

    def _parse(self, spec: Mapping[str, Any]) -> SavedAssignment | None:
        """The enforced part of a spec; None if it enforces nothing."""
        try:
            if spec.get("mode") == "None" or spec.get("pools") is None:
                return None
            pool = SavedPool(CpuSet.parse(spec["pools"]["shared"]))
            return SavedAssignment(pool, tuple(map(_container, spec.get("containers", ()))))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            problem = f"its spec is wrong: {type(error).__name__}: {error}"
            raise LocalCopyError(self._copy.path, problem) from error


def _container(one: Mapping[str, Any]) -> SavedContainer:
    return SavedContainer(
        one["podUID"],
        one["namespace"],
        one["pod"],
        one["container"],
        CpuSet.parse(one.get("cpus", "")),
        MemSet.parse(one.get("mems", "")),
        one.get("exclusive", False) is True,
    )
