"""Overwrite cpusets, and measure how long each value remains."""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from numapin_api.cpuset import CpuSet
from numapin_campaigns.faults.target import Inject, Target
from numapin_campaigns.frame.observe import AWAY
from numapin_campaigns.frame.plan import Fault, Needs, PlannedFault
from numapin_campaigns.parts.part import ENFORCER
from numapin_campaigns.sampling.assignment_versions import AssignmentVersion
from numapin_campaigns.sampling.cgroup_tree import container_cgroups, read_name
from numapin_campaigns.sampling.samples import Overwrite
from numapin_lab.controlplane.api import AnswerError
from numapin_lab.controlplane.node_objects import read_node

POLL_SECONDS: Final = 0.0002
SOON_SECONDS: Final = 0.2
SLOW_POLL_SECONDS: Final = 0.005
INTENDED_POLL_SECONDS: Final = 0.5
PATIENCE_SECONDS: Final = 300.0
SETTING: Final = "cpuset.cpus"


_IN_A_THREAD: Final = frozenset({Needs.THREAD})
EXCLUSIVE: Final = Fault("OverwriteExclusive", every=8, needs=_IN_A_THREAD)
SHARED: Final = Fault("OverwriteShared", every=8, needs=_IN_A_THREAD)
QOS: Final = Fault("OverwriteQos", every=14, needs=_IN_A_THREAD)
FAULTS: Final = (EXCLUSIVE, SHARED, QOS)


@contextmanager
def injector(target: Target) -> Iterator[Inject]:
    """Overwrites cpusets; in the end every write has its outcome."""
    overwriter = Overwriter(target)
    yield overwriter.inject
    overwriter.join()


class Overwriter:
    """Overwrites cpusets; a thread for each write waits until it is reverted."""

    def __init__(self, target: Target) -> None:
        self._target, self._root = target, target.lab.kubepods
        self._all = CpuSet.parse(_text(self._root).strip())
        self._threads: list[threading.Thread] = []

    def inject(self, planned: PlannedFault) -> None:
        """Overwrite the cpusets that match the fault, if there are any."""
        for path, value in self._targets(planned):
            self._write(planned.fault, path, value)

    def join(self) -> None:
        """Return when every write has its outcome."""
        for thread in self._threads:
            thread.join()

    def _targets(self, planned: PlannedFault) -> Iterator[tuple[Path, CpuSet]]:
        body = self._assignment()
        version = AssignmentVersion.parse(body) if body else AssignmentVersion()
        shared = CpuSet.from_mask(version.shared)
        exclusive = {path for key, _ in version.reported_exclusive if (path := self._find(*key))}
        if planned.fault is EXCLUSIVE:
            yield from ((path, shared) for path in exclusive)
            return
        if shared == self._all:  # without an exclusive container a set can only be narrowed
            for path in _choose(sorted(self._containers() - exclusive), planned.choice):
                yield path, CpuSet(list(self._all)[-1:])
            return
        wide = self._all
        if planned.fault is QOS:
            classes = [self._root / name for name in ("besteffort", "burstable")]
            yield from ((path, wide) for path in _choose(classes, planned.choice))
            return
        for path in _choose(sorted(self._containers() - exclusive), planned.choice):
            ancestors = [one for one in reversed(path.parents) if one.is_relative_to(self._root)]
            yield from ((one, wide) for one in (*ancestors[1:], path))  # a parent before its child

    def _containers(self) -> set[Path]:
        return set(container_cgroups(self._root))

    def _find(self, uid: str, container: str) -> Path | None:
        for path in container_cgroups(self._root):
            if (
                path.parent.name == f"pod{uid}"
                and read_name(self._target.bundles, path.name) == container
            ):
                return path
        return None

    def _assignment(self) -> dict[str, Any] | None:
        lab = self._target.lab
        try:
            return read_node(lab.cluster.api, lab.node)
        except (AnswerError, *AWAY):
            return None

    def _write(self, fault: Fault, path: Path, value: CpuSet) -> None:
        """Write the value, unless it is there already or the kernel refuses it."""
        if _text(path).strip() in {"", str(value)}:
            return
        written_at = time.monotonic()
        try:
            (path / SETTING).write_text(str(value), encoding="ascii")
        except OSError:
            return
        thread = threading.Thread(target=self._follow, args=(fault, path, value, written_at))
        thread.start()
        self._threads.append(thread)

    def _follow(self, fault: Fault, path: Path, value: CpuSet, written_at: float) -> None:
        outcome, asked_at = "", written_at
        while not outcome and (now := time.monotonic()) - written_at < PATIENCE_SECONDS:
            text = _text(path).strip()
            if text != str(value):
                outcome = "Reverted" if text else "Removed"
            elif now - asked_at > INTENDED_POLL_SECONDS:
                asked_at = now
                outcome = "Intended" if self._intended(path, value) else ""
            if not outcome:
                time.sleep(POLL_SECONDS if now - written_at < SOON_SECONDS else SLOW_POLL_SECONDS)
        ended_at = time.monotonic() if outcome else None
        self._target.overwrites.append(
            Overwrite(
                fault.name,
                str(path.relative_to(self._root)),
                value.mask,
                written_at,
                ended_at,
                outcome or "Remained",
                self._target.parts.was_up(ENFORCER, written_at),
            )
        )

    def _intended(self, path: Path, value: CpuSet) -> bool:
        """Whether the spec asks for this value by now: a cgroup without exclusive containers."""
        body = self._assignment()
        if body is None:
            return False
        version = AssignmentVersion.parse(body)
        exclusive = {found for key in version.spec_containers() if (found := self._find(*key))}
        holds_exclusive = any(one.is_relative_to(path) for one in exclusive)
        return version.shared == value.mask and not holds_exclusive


def _choose(among: Sequence[Path], choice: float) -> tuple[Path, ...]:
    return (among[int(choice * len(among))],) if among else ()


def _text(path: Path) -> str:
    """The content of the file; empty when the cgroup is gone."""
    try:
        return (path / SETTING).read_text(encoding="ascii")
    except OSError:
        return ""
