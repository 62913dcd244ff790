"""Watch real cgroups and what is reported of them, as a process of its own.

It reads the effective sets of all pods' cgroups about every millisecond, and follows the
NodeAssignment and its NodeReport by watches. It compares the kernel with what is reported:

- a container counts as exclusive from the first version of the NodeAssignment whose status reports
  it as exclusive, with the same CPUs as the spec of that version;
- it counts until a version without it is received. That is later than numapin must keep it
  exclusive: the enforcer may have acted on a newer spec before the sampler received that spec.
  Such anomalies are recorded, and `verdict` excuses those after the enforcer has taken that spec;
- while the API server is down, the last version received counts;
- only containers with a task count, on both sides.

An anomaly is recorded when a task was read in the other cgroup, *then* the CPU in its set, *then* a
task in the exclusive container: reads at different times do not prove more. Each quarter of a
second the masks of threads are read, too (`threads`).

On SIGTERM the samples are pickled to `--output`, for the process that started this one.
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
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Final

from numapin_campaigns.laws.cgroup_tree import shared
from numapin_campaigns.sampling.assignment_versions import AssignmentVersion, ContainerKey
from numapin_campaigns.sampling.cgroup_tree import Leaf, PodsTree
from numapin_campaigns.sampling.samples import (
    Anomaly,
    AnomalyKind,
    Samples,
    Seen,
)
from numapin_campaigns.sampling.threads import Owner, ThreadLooks
from numapin_client.cache.informer_settings import InformerTiming
from numapin_client.client import connect
from numapin_client.login.find import find_login
from numapin_client.resources import Json
from numapin_lab.controlplane.node_objects import NodeWatch

PERIOD_SECONDS: Final = 0.001
EVERYTHING_EVERY: Final = 20
"""One sample in so many lists every folder again."""

MAX_ANOMALIES: Final = 200_000


@dataclass(slots=True)
class Reported:
    """The last version of the NodeAssignment, and every version so far."""

    current: AssignmentVersion = field(default_factory=AssignmentVersion)
    versions: list[AssignmentVersion] = field(default_factory=list)

    def add(self, version: AssignmentVersion) -> None:
        """Add a version that was received."""
        self.current = version
        self.versions.append(version)


class Watcher:
    """Receives every version of the NodeAssignment, in a thread."""

    def __init__(self, kubeconfig: Path, node: str, reported: Reported) -> None:
        self._kubeconfig, self._node, self._reported = kubeconfig, node, reported

    def start(self) -> None:
        """Start the watch; it lasts until the process ends."""
        threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True).start()

    async def _run(self) -> None:
        login = find_login(str(self._kubeconfig), os.environ)
        timing = InformerTiming(backoff_base_seconds=0.05, backoff_cap_seconds=0.2)
        async with connect(login, user_agent="numapin-lab-sampler") as client:
            await NodeWatch(client, self._changed, self._node, timing).run()

    def _changed(self, _: str, body: Json | None) -> None:
        version = AssignmentVersion.parse(body) if body else AssignmentVersion()
        now = replace(version, at=time.monotonic())
        if now != replace(self._reported.current, at=now.at) or not self._reported.versions:
            self._reported.add(now)


class Sampler:
    """Takes samples and records anomalies."""

    def __init__(self, tree: PodsTree, reported: Reported, rest_seconds: float = 0.0) -> None:
        self._tree, self._reported, self._rest_seconds = tree, reported, rest_seconds
        self._anomalies: list[Anomaly] = []
        self._seen: dict[str, Seen] = {}
        self._alive: set[str] = set()
        self._times: list[float] = []
        self._with_exclusive = 0
        self._exclusive_seen: set[ContainerKey] = set()
        self._threads = ThreadLooks(tree)

    def run(self, stop: threading.Event) -> Samples:
        """Sample until `stop` is set."""
        while not stop.is_set():
            now = time.monotonic()
            self.sample(now)
            left_seconds = PERIOD_SECONDS - (time.monotonic() - now)
            time.sleep(max(self._rest_seconds, left_seconds))
        return self.samples()

    def sample(self, now: float) -> None:
        """Take one sample; `now` is when it begins, monotonic seconds."""
        self._tree.refresh(now, everything=len(self._times) % EVERYTHING_EVERY == 0)
        self._record_cgroups(now)
        self._with_exclusive += self._compare(self._reported.current)
        self._times.append(now)

    def samples(self) -> Samples:
        """The samples so far."""
        gaps = sorted(later - now for now, later in pairwise(self._times)) or [0.0]
        return Samples(
            len(self._times),
            self._with_exclusive,
            frozenset(self._exclusive_seen),
            sum(gaps),
            gaps[-1],
            gaps[int(len(gaps) * 0.99)],
            tuple(self._anomalies),
            tuple(self._reported.versions),
            tuple(self._seen.values()),
        )

    def _record_cgroups(self, now: float) -> None:
        """Record cgroups that have a task for the first time, and cgroups that are gone."""
        leaves = self._tree.leaves
        for path, leaf in leaves.items():
            if path not in self._alive and self._tree.runs(leaf):
                name = self._tree.container(leaf) or ""
                self._seen[path] = Seen(path, leaf.pod_uid, name, leaf.seen_at, None)
                self._alive.add(path)
        if not self._alive <= leaves.keys():
            for path in self._alive - leaves.keys():
                self._seen[path] = replace(self._seen[path], gone_at=now)
            self._alive &= leaves.keys()

    def _compare(self, version: AssignmentVersion) -> bool:
        """Compare the kernel with one version; returns whether an exclusive container runs."""
        tree = self._tree
        if not version.spec_exclusive:
            return False
        sets = [(leaf, cpus) for leaf in tree.leaves.values() if (cpus := tree.cpus(leaf))]
        has = {leaf.path: cpus for leaf, cpus in sets}
        exclusive: list[Owner] = []
        for key, mask in version.reported_exclusive:
            leaf = self._find(key)
            if leaf is not None and tree.runs(leaf):
                exclusive.append((key, leaf, mask))
                self._exclusive_seen.add(key)
                self._check_pin(key, leaf, mask)
                self._check_others(key, leaf, mask, has)
        self._check_exclusive_pairs(
            [leaf for leaf, cpus in sets if not cpus & version.shared], version
        )
        for found, leaf in self._threads.look(time.monotonic(), exclusive, sets):
            self._note(found, leaf)
        return bool(exclusive)

    def _find(self, key: ContainerKey) -> Leaf | None:
        uid, name = key
        for leaf in self._tree.leaves.values():
            if leaf.pod_uid == uid and self._tree.container(leaf) == name:
                return leaf
        return None

    def _check_pin(self, key: ContainerKey, leaf: Leaf, mask: int) -> None:
        since = time.monotonic()
        found = self._tree.cpus(leaf)
        if found not in {mask, 0} and self._tree.runs(leaf):
            lost = Anomaly(since, AnomalyKind.LOST_PIN, key, leaf.path, found, leaf.seen_at)
            self._note(lost, leaf)

    def _check_others(
        self, key: ContainerKey, leaf: Leaf, mask: int, has: Mapping[str, int]
    ) -> None:
        for one in shared({leaf.path: mask}, has):
            other = self._tree.leaves[one.other]
            since = time.monotonic()
            found = self._tree.cpus(other) if self._tree.runs(other) else 0
            if found & mask and self._tree.runs(leaf):
                both = Anomaly(since, AnomalyKind.OVERLAP, key, other.path, found, other.seen_at)
                self._note(both, other)

    def _check_exclusive_pairs(self, alone: Sequence[Leaf], version: AssignmentVersion) -> None:
        """Without the NodeAssignment: containers outside the shared pool must not share a CPU."""
        for index, one in enumerate(alone):
            for other in alone[index + 1 :]:
                if not (other.is_within(one) or one.is_within(other)):
                    self._check_pair(one, other, version.shared)

    def _check_pair(self, one: Leaf, other: Leaf, pool: int) -> None:
        tree = self._tree
        if not (tree.runs(one) and tree.runs(other)):
            return
        since = time.monotonic()
        first, second = tree.cpus(one), tree.cpus(other)
        if first & second and not (first | second) & pool and tree.runs(one):
            key = (one.pod_uid, tree.container(one) or "")
            found = Anomaly(
                since, AnomalyKind.TWO_EXCLUSIVE, key, other.path, second, other.seen_at
            )
            self._note(replace(found, other=one.path), other)

    def _note(self, anomaly: Anomaly, leaf: Leaf) -> None:
        if len(self._anomalies) < MAX_ANOMALIES:
            until, started = time.monotonic(), self._tree.has_started(leaf)
            self._anomalies.append(replace(anomaly, until=until, started=started))


def main() -> None:
    """Sample until SIGTERM."""
    parser = argparse.ArgumentParser(prog="python -m numapin_campaigns.sampling.sampler")
    parser.add_argument("--kubepods", type=Path, required=True, help="the pods' cpuset folder")
    parser.add_argument("--bundles", type=Path, required=True, help="the runtime's containers")
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--node", required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument(
        "--rest-seconds", type=float, default=0.0, help="at least so long between two samples"
    )
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
    tree = PodsTree(options.kubepods, options.bundles)
    samples = Sampler(tree, reported, options.rest_seconds).run(stop)
    options.output.write_bytes(pickle.dumps(samples))


if __name__ == "__main__":
    main()
