"""Removes CFS limits and restores them; a file of the node records what they were."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Final, Protocol

from numapin_daemon import saved_values
from numapin_enforcer.cfs_quota.plan import NO_OTHERS, QuotaPlan, plan_quotas
from numapin_enforcer.cgroups.apply import Outcome, apply
from numapin_enforcer.cgroups.errors import CgroupVanishedError
from numapin_enforcer.cgroups.tree import CgroupTree, contains
from numapin_enforcer.cgroups.write import Quota

FILE_NAME: Final = "quotas.json"

MOST_BYTES: Final = 16 * 1024 * 1024
"""Far more than the limits of all containers of a node take."""

MOST_READS: Final = 5
"""How often limits are read until none has changed while they were saved."""


class QuotaFiles(CgroupTree, Protocol):
    """A cgroup tree whose CFS limits can be read."""

    def read_quota(self, path: str) -> Quota | None:
        """The CFS limit of a cgroup; None if it has no cpu controller.

        Raises:
            CgroupVanishedError: the cgroup is gone.
        """
        ...


class LiftedQuotas:
    """The limits that were removed. Each is on disk before it is removed, so none is ever lost.

    The kernel does not keep a removed limit, and it cannot be computed from a container's weight.
    """

    def __init__(self, files: QuotaFiles, root: str, state_dir: Path) -> None:
        """Read which limits earlier processes removed.

        Args:
            files: the cgroup tree.
            root: only cgroups below it count.
            state_dir: a folder that outlives this process.
        """
        self.files = files
        self._path = state_dir / FILE_NAME
        self._lifted = _read(self._path, root)
        self.restored: Mapping[str, Quota] = {}
        """The limits that this object has written again, of cgroups that still exist."""

    @property
    def lifted(self) -> Mapping[str, Quota]:
        """The limits that were removed and not restored, by cgroup."""
        return dict(self._lifted)

    def update(
        self,
        unlimited: Collection[str],
        others: Mapping[str, bool] = NO_OTHERS,
        awaited: Collection[str] = (),
    ) -> Outcome:
        """Remove the limits of `unlimited` and restore all others; see `plan_quotas`.

        A write that fails is retried by the next call.

        Raises:
            OSError: a limit could not be saved; then none was removed.
            CgroupError: a limit could not be read.
        """
        found, planned = self._saved_plan(unlimited, others, awaited)
        outcome = apply(planned.writes, self.files)
        missing = {write.path for write in outcome.missing}
        made = {write.path for write in outcome.made}
        unwritten = {path: limit for path, limit in planned.save_before.items() if path in missing}
        written = {path: limit for path, limit in planned.save_before.items() if path in made}
        self._save({**planned.save_after, **unwritten})
        self.restored = {
            path: limit
            for path, limit in {**self.restored, **written}.items()
            if path in found and path not in self._lifted
        }
        return outcome

    def _saved_plan(
        self, unlimited: Collection[str], others: Mapping[str, bool], awaited: Collection[str]
    ) -> tuple[Mapping[str, Quota], QuotaPlan]:
        """What was found and is planned, with everything saved that must be before a write.

        A disk takes long to save it. What others write meanwhile is newer than what was read, and
        must be neither overwritten nor forgotten.
        """
        paths = {*unlimited, *others, *self._lifted, *self.restored}
        found = dict(self._found(paths))
        for _ in range(MOST_READS):
            planned = plan_quotas(unlimited, found, self._lifted, others, awaited)
            self._save(planned.save_before)
            again = dict(self._found(paths)) if planned.writes else found
            if again == found:
                break
            found = again
        return found, planned

    def _found(self, paths: Collection[str]) -> list[tuple[str, Quota]]:
        found: list[tuple[str, Quota]] = []
        for path in sorted(paths):
            try:
                quota = self.files.read_quota(path)
            except CgroupVanishedError:
                continue
            if quota is not None:
                found.append((path, quota))
        return found

    def _save(self, limits: Mapping[str, Quota]) -> None:
        if limits == self._lifted:
            return
        content = {path: [one.quota_us, one.period_us] for path, one in limits.items()}
        saved_values.save(self._path, content)
        self._lifted = dict(limits)


def _read(path: Path, root: str) -> dict[str, Quota]:
    """The saved limits of cgroups below `root`.

    Limits of a damaged file cannot be restored. If the folder cannot be read, it cannot be written
    either, and no limit will be removed.
    """
    found = saved_values.read(
        path,
        _parsed,
        most_bytes=MOST_BYTES,
        damaged="cannot read which CFS limits were removed; they stay removed",
    )
    return {one: limit for one, limit in found.items() if _below(root, one)}


def _parsed(content: Any) -> dict[str, Quota]:
    return {one: _quota(*limit) for one, limit in content.items()}


def _quota(quota_us: int, period_us: int) -> Quota:
    if quota_us <= 0 or period_us <= 0:
        raise ValueError(f"{quota_us} {period_us} is no CFS limit")
    return Quota(quota_us, period_us)


def _below(root: str, path: str) -> bool:
    """Whether a path from the file is in this node's tree; it may be of another cgroup driver."""
    return path != root and contains(root, path) and ".." not in path.split("/")
