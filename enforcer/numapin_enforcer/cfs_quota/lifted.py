"""Edge: lifts CFS limits and gives them back; what they were is kept in a file of the node."""

import json
import logging
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final, Protocol

from numapin_enforcer.cfs_quota.plan import plan_quotas
from numapin_enforcer.cgroups.apply import Outcome, apply
from numapin_enforcer.cgroups.tree import CgroupTree, CgroupVanishedError, Quota

LOG: Final = logging.getLogger(__name__)

FILE_NAME: Final = "quotas.json"


class QuotaFiles(CgroupTree, Protocol):
    """A cgroup tree whose CFS limits can be read."""

    def read_quota(self, path: str) -> Quota | None:
        """The CFS limit of a cgroup; None where there is no cpu controller.

        Raises:
            CgroupVanishedError: the cgroup is gone.
        """
        ...


class LiftedQuotas:
    """Makes the CFS limits match; a limit is on disk before it is lifted, so none is ever lost.

    The kernel has no better memory of it: from a container's weight its limit cannot be told.
    """

    def __init__(self, files: QuotaFiles, root: str, state_dir: Path) -> None:
        """Args: `files` are the cgroups below `root`; `state_dir` outlives this process."""
        self._files, self._path = files, state_dir / FILE_NAME
        self._remembered = _read(self._path, root)
        self.given_back: Mapping[str, Quota] = {}
        """The limits given back since this was made, of cgroups that are still there."""

    @property
    def remembered(self) -> Mapping[str, Quota]:
        """The limits that were lifted and not given back."""
        return dict(self._remembered)

    def run(self, free: Collection[str]) -> Outcome:
        """Lift the limits of `free`, give back those of everybody else; see `plan_quotas`.

        A write that fails is tried again by the next run.

        Raises:
            OSError: what is to be lifted cannot be remembered; then nothing is lifted.
            CgroupError: a limit could not be read.
        """
        found = dict(self._found({*free, *self._remembered, *self.given_back}))
        planned = plan_quotas(free, found, self._remembered)
        self._remember(planned.remember)
        outcome = apply(planned.writes, self._files)
        missing = {write.path for write in outcome.missing}
        kept = {path: limit for path, limit in planned.remember.items() if path in missing}
        given = {**self.given_back, **planned.remember}
        self._remember({**planned.keep, **kept})
        self.given_back = {
            path: limit
            for path, limit in given.items()
            if path in found and path not in self._remembered
        }
        return outcome

    def _found(self, paths: Collection[str]) -> list[tuple[str, Quota]]:
        found: list[tuple[str, Quota]] = []
        for path in sorted(paths):
            try:
                quota = self._files.read_quota(path)
            except CgroupVanishedError:
                continue
            if quota is not None:
                found.append((path, quota))
        return found

    def _remember(self, limits: Mapping[str, Quota]) -> None:
        if limits == self._remembered:
            return
        content = {path: [one.quota_us, one.period_us] for path, one in limits.items()}
        self._path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self._path.with_suffix(".new")
        with fresh.open("w", encoding="utf-8") as file:
            json.dump(content, file)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self._path)
        self._remembered = dict(limits)


def _read(path: Path, root: str) -> dict[str, Quota]:
    """What was remembered of cgroups below `root`; a damaged file is as none, and told.

    Its limits cannot be given back any more. Where the folder cannot be read, it cannot be written
    either, and nothing will be lifted.
    """
    try:
        content = json.loads(path.read_bytes())
        found = {one: _quota(*limit) for one, limit in content.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, AttributeError) as error:
        extra = {"file": path, "error": error}
        LOG.warning("which CFS limits were lifted is not known any more", extra=extra)
        return {}
    return {one: limit for one, limit in found.items() if _below(root, one)}


def _quota(quota_us: int, period_us: int) -> Quota:
    if quota_us <= 0 or period_us <= 0:
        raise ValueError(f"{quota_us} {period_us} is no CFS limit")
    return Quota(quota_us, period_us)


def _below(root: str, path: str) -> bool:
    """Whether a path from the file is in this node's tree; it may be of another driver's."""
    return path.startswith(f"{root}/") and ".." not in path.split("/")
