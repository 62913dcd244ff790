"""Edge: cpusets are overwritten by hand, and it is measured how long that lasts."""

import os
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from numapin_api.cpuset import CpuSet
from numapin_lab.chaos.injection.kills import Killer
from numapin_lab.chaos.observation.assignment_versions import Version
from numapin_lab.chaos.observation.cgroup_tree import read_name
from numapin_lab.chaos.observation.cluster_state import ASSIGNMENTS, AWAY
from numapin_lab.chaos.observation.samples import Overwrite
from numapin_lab.chaos.plan import Fault, PlannedFault
from numapin_lab.controlplane.api import AnswerError
from numapin_lab.running_lab import RunningLab

POLL_SECONDS: Final = 0.0002
SOON_SECONDS: Final = 0.2
SLOW_POLL_SECONDS: Final = 0.005
ASK_SECONDS: Final = 0.5
PATIENCE_SECONDS: Final = 300.0
SETTING: Final = "cpuset.cpus"


class Overwriter:
    """Writes into cgroups, each time in a thread that waits for the repair."""

    def __init__(self, lab: RunningLab, killer: Killer) -> None:
        self._session, self.killer = lab, killer
        self._root = lab.kubepods
        run = lab.cluster.runtime.run
        self._bundles = run / "containerd/io.containerd.runtime.v2.task/k8s.io"
        self._all = CpuSet.parse(_text(self._root).strip())
        self._threads: list[threading.Thread] = []
        self.made: list[Overwrite] = []

    @property
    def bundles(self) -> Path:
        """Where the runtime keeps the containers' configurations."""
        return self._bundles

    def commit(self, planned: PlannedFault) -> None:
        """Overwrite what there is; nothing where there is no such cgroup now."""
        for path, value in self._targets(planned):
            self._write(planned.fault, path, value)

    def join(self) -> None:
        """Return when nothing that was written is waited for any more."""
        for thread in self._threads:
            thread.join()

    def _targets(self, planned: PlannedFault) -> Iterator[tuple[Path, CpuSet]]:
        body = self._assignment()
        version = Version.parse(body) if body else Version()
        shared = CpuSet.from_mask(version.shared)
        owners = {path for owner, _ in version.claims if (path := self._find(*owner))}
        if planned.fault is Fault.OVERWRITE_OWNER:
            yield from ((path, shared) for path in owners)
            return
        if shared == self._all:  # nobody owns anything: there is only less to be had
            for path in _choose(sorted(self._containers() - owners), planned.choice):
                yield path, CpuSet(list(self._all)[-1:])
            return
        wide = self._all
        if planned.fault is Fault.OVERWRITE_QOS:
            classes = [self._root / name for name in ("besteffort", "burstable")]
            yield from ((path, wide) for path in _choose(classes, planned.choice))
            return
        for path in _choose(sorted(self._containers() - owners), planned.choice):
            above = [one for one in reversed(path.parents) if one.is_relative_to(self._root)]
            yield from ((one, wide) for one in (*above[1:], path))  # children are inside parents

    def _containers(self) -> set[Path]:
        return {path for path in self._folders() if path.parent.name.startswith("pod")}

    def _find(self, uid: str, container: str) -> Path | None:
        for path in self._folders():
            if path.parent.name == f"pod{uid}" and read_name(self._bundles, path.name) == container:
                return path
        return None

    def _folders(self) -> Iterator[Path]:
        """Whatever is named as a container's cgroup; one that goes meanwhile is left out."""
        for folder, _, _ in os.walk(self._root):
            path = Path(folder)
            if len(path.name) == 64:
                yield path

    def _assignment(self) -> dict[str, Any] | None:
        try:
            found: dict[str, Any] = self._session.cluster.api.get(
                f"{ASSIGNMENTS}/{self._session.node}"
            )
        except (AnswerError, *AWAY):
            return None
        return found

    def _write(self, fault: Fault, path: Path, value: CpuSet) -> None:
        """Write, if that changes anything and the kernel takes it: others write as well."""
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
                outcome = "Repaired" if text else "Vanished"
            elif now - asked_at > ASK_SECONDS:
                asked_at = now
                outcome = "Meant" if self._meant(path, value) else ""
            if not outcome:
                time.sleep(POLL_SECONDS if now - written_at < SOON_SECONDS else SLOW_POLL_SECONDS)
        ended_at = time.monotonic() if outcome else None
        self.made.append(
            Overwrite(
                fault.value,
                str(path.relative_to(self._root)),
                value.mask,
                written_at,
                ended_at,
                outcome or "Kept",
                self.killer.downtimes.was_up("enforcer", written_at),
            )
        )

    def _meant(self, path: Path, value: CpuSet) -> bool:
        """Whether this is what the shared pool is by now, for one that owns nothing."""
        body = self._assignment()
        if body is None:
            return False
        version = Version.parse(body)
        owners = {found for owner in version.owners() if (found := self._find(*owner))}
        holds_owner = any(one.is_relative_to(path) for one in owners)
        return version.shared == value.mask and not holds_owner


def _choose(among: Sequence[Path], choice: float) -> tuple[Path, ...]:
    return (among[int(choice * len(among))],) if among else ()


def _text(path: Path) -> str:
    """The file's content; empty when the cgroup is gone."""
    try:
        return (path / SETTING).read_text(encoding="ascii")
    except OSError:
        return ""
