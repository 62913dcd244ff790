"""Watch real cgroups and what is reported of them, as a process of its own.

A process of its own reads the effective sets of all pods' cgroups about every millisecond, and
follows the NodeAssignment by a watch. What it holds the kernel against is the claim of DESIGN I1:

- a claim begins when a version of the NodeAssignment is seen here whose status calls a container
  exclusive, on just the CPUs that the spec of the same version gives it;
- it ends when a version is seen that says so no more. That is later than it was allowed to end: the
  enforcer may have acted on a newer spec before that spec arrived here. Such moments are written
  down, and `verdict` lets go of those after the enforcer said that it had taken a spec without it;
- while nobody answers (the API server is away), what was claimed last still counts;
- it is about a container that runs: without a task there is no owner, and without one no intruder.

A moment is written down when a task was seen in the intruder, *then* the CPU in its set, *then* a
task in the owner: what reads of different instants could not prove is not suspected.

On SIGTERM everything is written to `--output` with pickle, for the process that started this one.
"""

import argparse
import asyncio
import logging
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Final

from numapin_client.client import Source, connect
from numapin_client.informer import Informer, InformerTiming
from numapin_client.login.find import find_login
from numapin_client.resources import NODE_ASSIGNMENTS
from numapin_client.store import Change
from numapin_lab.chaos.observation.assignment_versions import Owner, Version
from numapin_lab.chaos.observation.cgroup_tree import Leaf, PodsTree
from numapin_lab.chaos.observation.samples import Moment, Samples, Seen, Suspicion

PERIOD_SECONDS: Final = 0.001
EVERYTHING_EVERY: Final = 20
"""Samples between two that list every folder anew."""

MOST_MOMENTS: Final = 200_000


@dataclass(slots=True)
class Reported:
    """The NodeAssignment as it was seen last, and every version before."""

    current: Version = field(default_factory=Version)
    versions: list[Version] = field(default_factory=list)

    def add(self, version: Version) -> None:
        """A version has arrived."""
        self.current = version
        self.versions.append(version)


class Watcher:
    """Takes every version of the NodeAssignment as it arrives, in a thread of its own."""

    def __init__(self, kubeconfig: Path, node: str, reported: Reported) -> None:
        self._kubeconfig, self._node, self._reported = kubeconfig, node, reported

    def start(self) -> None:
        """Begin to watch, until the process ends."""
        threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True).start()

    async def _run(self) -> None:
        login = find_login(str(self._kubeconfig), os.environ)
        source = Source(NODE_ASSIGNMENTS, field_selector=f"metadata.name={self._node}")
        timing = InformerTiming(backoff_base_seconds=0.05, backoff_cap_seconds=0.2)
        async with connect(login, user_agent="numapin-lab-sampler") as client:
            await Informer(client, source, Version.parse, self._changed, timing).run()

    def _changed(self, changes: Sequence[Change[Version]]) -> None:
        for change in changes:
            self._reported.add(replace(change.new or Version(), at=time.monotonic()))


class Sampler:
    """Looks, and writes down what it saw."""

    def __init__(self, tree: PodsTree, reported: Reported) -> None:
        self._tree, self._reported = tree, reported
        self._moments: list[Moment] = []
        self._seen: dict[str, Seen] = {}
        self._alive: set[str] = set()
        self._times: list[float] = []
        self._owned = 0

    def run(self, stop: threading.Event) -> Samples:
        """Sample until told to stop."""
        while not stop.is_set():
            now = time.monotonic()
            self.look(now)
            time.sleep(max(0.0, PERIOD_SECONDS - (time.monotonic() - now)))
        return self.samples()

    def look(self, now: float) -> None:
        """Take one sample; `now` is when it begins, monotonic seconds."""
        self._tree.refresh(now, everything=len(self._times) % EVERYTHING_EVERY == 0)
        self._meet(now)
        self._owned += self._compare(self._reported.current)
        self._times.append(now)

    def samples(self) -> Samples:
        """Everything so far."""
        gaps = sorted(later - now for now, later in pairwise(self._times)) or [0.0]
        return Samples(
            len(self._times),
            self._owned,
            sum(gaps),
            gaps[-1],
            gaps[int(len(gaps) * 0.99)],
            tuple(self._moments),
            tuple(self._reported.versions),
            tuple(self._seen.values()),
        )

    def _meet(self, now: float) -> None:
        """Note who runs for the first time, and who went."""
        leaves = self._tree.leaves
        for path, leaf in leaves.items():
            if path not in self._alive and self._tree.runs(leaf):
                name = self._tree.container(leaf) or ""
                self._seen[path] = Seen(path, leaf.pod_uid, name, leaf.born_at, None)
                self._alive.add(path)
        if not self._alive <= leaves.keys():
            for path in self._alive - leaves.keys():
                self._seen[path] = replace(self._seen[path], gone_at=now)
            self._alive &= leaves.keys()

    def _compare(self, version: Version) -> bool:
        """Hold the kernel against one version; says whether an owner runs."""
        if not version.listed:
            return False
        tree = self._tree
        sets = [(leaf, cpus) for leaf in tree.leaves.values() if (cpus := tree.cpus(leaf))]
        owned = False
        for owner, mask in version.claims:
            leaf = self._find(owner)
            if leaf is not None and tree.runs(leaf):
                owned = True
                self._check_pin(owner, leaf, mask)
                self._check_others(owner, leaf, mask, sets)
        self._check_owners([leaf for leaf, cpus in sets if not cpus & version.shared], version)
        return owned

    def _find(self, owner: Owner) -> Leaf | None:
        uid, name = owner
        for leaf in self._tree.leaves.values():
            if leaf.pod_uid == uid and self._tree.container(leaf) == name:
                return leaf
        return None

    def _check_pin(self, owner: Owner, leaf: Leaf, mask: int) -> None:
        since = time.monotonic()
        found = self._tree.cpus(leaf)
        if found not in {mask, 0} and self._tree.runs(leaf):
            lost = Moment(since, Suspicion.LOST_PIN, owner, leaf.path, found, leaf.born_at)
            self._note(lost, leaf)

    def _check_others(
        self, owner: Owner, leaf: Leaf, mask: int, sets: Iterable[tuple[Leaf, int]]
    ) -> None:
        for other, cpus in sets:
            if not cpus & mask or f"{other.path}/".startswith(f"{leaf.path}/"):
                continue
            since = time.monotonic()
            found = self._tree.cpus(other) if self._tree.runs(other) else 0
            if found & mask and self._tree.runs(leaf):
                both = Moment(since, Suspicion.OVERLAP, owner, other.path, found, other.born_at)
                self._note(both, other)

    def _check_owners(self, alone: Sequence[Leaf], version: Version) -> None:
        """By the kernel alone: whoever stands outside the shared pool stands there alone."""
        for index, one in enumerate(alone):
            for other in alone[index + 1 :]:
                if other.path.startswith(f"{one.path}/") or one.path.startswith(f"{other.path}/"):
                    continue
                self._check_two(one, other, version.shared)

    def _check_two(self, one: Leaf, other: Leaf, shared: int) -> None:
        tree = self._tree
        if not (tree.runs(one) and tree.runs(other)):
            return
        since = time.monotonic()
        first, second = tree.cpus(one), tree.cpus(other)
        if first & second and not (first | second) & shared and tree.runs(one):
            owner = (one.pod_uid, tree.container(one) or "")
            found = Moment(since, Suspicion.TWO_OWNERS, owner, other.path, second, other.born_at)
            self._note(replace(found, other=one.path), other)

    def _note(self, moment: Moment, leaf: Leaf) -> None:
        if len(self._moments) < MOST_MOMENTS:
            until, begun = time.monotonic(), self._tree.has_begun(leaf)
            self._moments.append(replace(moment, until=until, begun=begun))


def main() -> None:
    """Sample until SIGTERM."""
    parser = argparse.ArgumentParser(prog="python -m numapin_lab.chaos.observation.sampler")
    parser.add_argument("--kubepods", type=Path, required=True, help="the pods' cpuset folder")
    parser.add_argument("--bundles", type=Path, required=True, help="the runtime's containers")
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--node", required=True)
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    logging.basicConfig(level=logging.ERROR)
    sys.setswitchinterval(0.0005)
    with suppress(PermissionError):  # without it the gaps are longer on busy CPUs
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    reported = Reported()
    Watcher(options.kubeconfig, options.node, reported).start()
    while not (reported.versions or stop.is_set()):
        time.sleep(PERIOD_SECONDS)
    print(
        "the NodeAssignment is seen", flush=True
    )  # the process that started this one waits for it
    samples = Sampler(PodsTree(options.kubepods, options.bundles), reported).run(stop)
    options.output.write_bytes(pickle.dumps(samples))


if __name__ == "__main__":
    main()
