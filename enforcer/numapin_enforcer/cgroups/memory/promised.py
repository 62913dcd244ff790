"""Whether the memory that containers were promised on a NUMA node can still be had there.

Burstable and BestEffort pods may use memory on any NUMA node, whoever it was promised to.
Does no I/O.
"""

import resource
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from numapin_api.quantity import format_bytes
from numapin_api.schema.plain import NodeAssignmentSpec
from numapin_enforcer.cgroups.memory.use import NodeBytes, used_by
from numapin_enforcer.cgroups.naming import CgroupNaming, Qos

LOOK_SECONDS: Final = 60.0
"""How often to read: the kernel adds the counts of all CPUs up for each cgroup."""

MOST_READ: Final = 64
"""Containers of which is read what they use, those with most memory; others count as using all."""

LEAST_SHORT_BYTES: Final = 64 << 20
LEAST_SHORT_SHARE: Final = 64
"""Memory is missing if both are exceeded, the second one as a share of what is promised: the kernel
keeps some for itself, and its counts are not of one moment."""

LOOKS_TO_CHANGE: Final = 2
"""After so many looks in a row a NUMA node is named, or named no more: each change is a write."""

PodCgroups = Mapping[tuple[str, str], str]
"""The cgroup of each container by pod UID and name."""


@dataclass(frozen=True, slots=True)
class NumaUse:
    """Memory of one NUMA node in bytes, without huge pages.

    Attributes:
        numa_node: its number.
        promised: what containers are bound to on this NUMA node alone.
        unused: what of that they do not have there yet.
        available: what is free, or could be freed: files, and caches of the kernel.
        burstable: what Burstable pods have there.
        best_effort: what BestEffort pods have there.
    """

    numa_node: int
    promised: int
    unused: int
    available: int
    burstable: int
    best_effort: int

    @property
    def is_short(self) -> bool:
        """Whether more is promised than can be had, whatever the kernel gives back for it."""
        least = max(LEAST_SHORT_BYTES, self.promised // LEAST_SHORT_SHARE)
        return self.unused - self.available > least

    @property
    def text(self) -> str:
        """What is missing, for people."""
        unused, available, burstable, best_effort = map(
            format_bytes, (self.unused, self.available, self.burstable, self.best_effort)
        )
        return (
            f"NUMA node {self.numa_node}: {unused} not used yet, {available} can be had; Burstable "
            f"pods have {burstable} there, BestEffort pods {best_effort}"
        )


class PromisedMemory:
    """What was read last, and of which NUMA nodes memory is missing.

    Attributes:
        found: the NUMA nodes to which containers are bound.
    """

    def __init__(self, available: Callable[[int], int | None], page_bytes: int = 0) -> None:
        """Know nothing yet.

        Args:
            available: reads what of a NUMA node is free or could be freed; None if it cannot.
            page_bytes: the machine's by default.
        """
        self._available, self._page_bytes = available, page_bytes or resource.getpagesize()
        self._due_seconds = 0.0
        self._looks: dict[int, int] = {}
        self._named: dict[int, str] = {}
        self.found: tuple[NumaUse, ...] = ()

    @property
    def note(self) -> str:
        """Where memory is missing; empty if it is nowhere."""
        if not self._named:
            return ""
        named = "; ".join(self._named[node] for node in sorted(self._named))
        return (
            f"memory that containers were promised is used by others. {named}. Give other pods "
            "memory limits, or keep more back (memory.reserved)"
        )

    def look(
        self,
        spec: NodeAssignmentSpec,
        cgroups: PodCgroups,
        naming: CgroupNaming,
        numa_stat: Callable[[str], str],
        now_seconds: float,
    ) -> None:
        """Read again if it is time to.

        Args:
            spec: what is enforced.
            cgroups: the cgroups of its containers.
            naming: how to find those of a QoS class.
            numa_stat: reads the `memory.numa_stat` of a cgroup; empty if there is none.
            now_seconds: the monotonic time.
        """
        if now_seconds < self._due_seconds:
            return
        self._due_seconds = now_seconds + LOOK_SECONDS
        promised, unused = self._promised(spec, cgroups, numa_stat)
        classes = [
            self._used(naming.qos_path(one), numa_stat) if promised else {}
            for one in (Qos.BURSTABLE, Qos.BEST_EFFORT)
        ]
        self.found = tuple(
            NumaUse(node, size, unused[node], free, *(one.get(node, 0) for one in classes))
            for node, size in sorted(promised.items())
            if (free := self._available(node)) is not None
        )
        self._judge()

    def _promised(
        self, spec: NodeAssignmentSpec, cgroups: PodCgroups, numa_stat: Callable[[str], str]
    ) -> tuple[dict[int, int], dict[int, int]]:
        """What is promised on each NUMA node, and what of that is not used."""
        bound = [
            (size, one)
            for one in spec.containers
            if len(one.mems) == 1
            and (size := sum(each.bytes for each in one.memory if each.resource == "memory"))
        ]
        bound.sort(key=lambda each: (-each[0], each[1].key))
        promised, unused = dict[int, int](), dict[int, int]()
        for number, (size, one) in enumerate(bound):
            (node,) = one.mems
            path = cgroups.get(one.key)
            used = self._used(path, numa_stat).get(node, 0) if path and number < MOST_READ else 0
            left = 0 if number >= MOST_READ else max(0, size - used)
            promised[node] = promised.get(node, 0) + size
            unused[node] = unused.get(node, 0) + left
        return promised, unused

    def _used(self, path: str, numa_stat: Callable[[str], str]) -> NodeBytes:
        return used_by(path, numa_stat, self._page_bytes)

    def _judge(self) -> None:
        """Name NUMA nodes of which memory has been missing for some looks, and others no more."""
        now = {one.numa_node: one for one in self.found}
        for node in now.keys() | self._named.keys():
            short = node in now and now[node].is_short
            looks = self._looks.get(node, 0) + 1 if short is not (node in self._named) else 0
            self._looks[node] = looks
            if looks < LOOKS_TO_CHANGE:
                continue
            self._looks[node] = 0
            if short:
                self._named[node] = now[node].text
            else:
                del self._named[node]
        self._looks = {node: self._looks[node] for node in now.keys() | self._named.keys()}
