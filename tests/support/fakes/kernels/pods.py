"""The kubelet's cgroups over a model of the kernel, and their finder."""

import os
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from numapin_campaigns.histories.kernel.watched import ModelWatch, WatchedModel
from numapin_enforcer.cgroups.kubepods.finder import KubepodsFinder, PodTree
from numapin_enforcer.cgroups.mounts import Mounts
from numapin_enforcer.cgroups.naming import CgroupNaming, Driver
from numapin_enforcer.cgroups.tree import OutsideCgroup, Version
from numapin_enforcer.cgroups.tree_cache import TreeCache
from numapin_enforcer.cgroups.watch.inotify import Changes
from support.fakes.kernels.new_pods import NewPods

MOUNTS = Mounts(Version.V2, Path("/nonexistent"), Path("/nonexistent"))


class Events(ModelWatch):
    """The watch's descriptor: readable from the first event on, as if they never ended."""

    def __init__(self, model: WatchedModel, descriptor: int = -1) -> None:
        super().__init__(model)
        self._descriptor, self.reads, self.matter = descriptor, 0, True
        self.collected = Changes()
        self.was_empty = False

    def fileno(self) -> int:
        return self._descriptor

    def begin(self) -> None:
        os.eventfd_write(self._descriptor, 1)

    def collect(self) -> bool:
        self.reads += 1
        return self.matter

    def close(self) -> None:
        """It is opened again with the tree."""


class NoNewPods:
    """No pod is reported before the other watch reports it."""

    problem = ""

    def fileno(self) -> int:
        return -1

    def take(self) -> tuple[str, ...]:
        return ()

    def close(self) -> None:
        """Nothing is open."""


@dataclass(frozen=True)
class ModelPods(PodTree):
    """Of containers outside of it, those that a test has put in `elsewhere`."""

    elsewhere: dict[str, OutsideCgroup] = field(default_factory=dict)

    def outside(self, ids: Collection[str]) -> dict[str, OutsideCgroup]:
        return {id_: one for id_, one in self.elsewhere.items() if id_ in ids}


def model_pods(
    model: WatchedModel, driver: Driver, watch: Events | None = None, new: NewPods | None = None
) -> ModelPods:
    """The cgroups of a model; without events, unless there are watches."""
    snapshot = TreeCache(model, ModelWatch(model))
    watches = (watch or Events(model), new or NoNewPods())
    return ModelPods(CgroupNaming(driver), model, *watches, snapshot, MOUNTS)


class ModelFinder(KubepodsFinder):
    """Finds the cgroups of a model while `is_there` is set."""

    def __init__(self, pods: PodTree) -> None:
        self.mounts, self.tree, self.problem = pods.mounts, None, ""
        self._pods = pods
        self.is_there, self.has_moved, self.opened = True, False, 0

    def open(self) -> PodTree | None:
        self.opened += 1
        self.tree = self._pods if self.is_there else None
        self.problem = "" if self.is_there else "found neither"
        return self.tree

    def moved(self) -> bool:
        found, self.has_moved = self.has_moved, False
        return found
