"""What must hold after every single write (`numapin_campaigns.laws.writes`), and what counts.

I1: what counts is a CPU that was reported exclusive to a container, as long as the spec has the
container exclusive. If others have put
themselves on that CPU and the spec takes it from the container, only other exclusive containers
count: a moving one is never parked there. If others have taken the container off that CPU before
the pass, and the spec takes it from the container as well, it does not count. I3: on v2 only.
I4: a restart writes nothing once all is in force. I5: what is reported exclusive is so by the
kernel. The standby grants no container an exclusive CPU, and moves none that is on its own.

Not judged are cgroups that others have made or written since the last look: nothing of ours can
have made them safe yet.
"""

from collections.abc import Collection, Mapping

from numapin_api.cpuset import CpuSet
from numapin_api.schema.plain import NodeAssignmentSpec
from numapin_api.topology import Topology
from numapin_campaigns.histories.actions import container_of
from numapin_campaigns.histories.kernel.restricted import Kernel
from numapin_campaigns.laws.cgroup_tree import alone, shared
from numapin_campaigns.laws.writes import BrokenLawError, Writes
from numapin_enforcer.cgroups.tree import Tree, Version, contains
from numapin_enforcer.cgroups.write import Write

Key = tuple[str, str]
"""Pod and name of a container."""


class Laws(Writes):
    """Judges writes to one kernel by what was reported (`held`) and by the spec."""

    def __init__(self, kernel: Kernel, topology: Topology) -> None:
        super().__init__(kernel, topology)
        self._kernel: Kernel = kernel
        self._owned: dict[Key, CpuSet] = {}
        self._keys: dict[str, Key] = {}
        self._named: frozenset[str] = frozenset()
        self._unseen: set[str] = set()
        self._unannounced: set[str] = set()
        self._intruded: set[tuple[str, int]] = set()
        """Reported cgroups, and CPUs of theirs that others had when the pass began."""
        self._is_disturbed = self._is_standby = False
        self._had: dict[str, CpuSet] = {}
        self.expect_no_write = False
        """Set when all is in force and nothing may be written (I4)."""

    def accept(self, spec: NodeAssignmentSpec) -> None:
        """From now on the enforcer works towards `spec`."""
        self._owned = {one.key: one.cpus for one in spec.containers if one.exclusive}

    def disturb(self, path: str) -> None:
        """Others have made or written a cgroup: it and its descendants are not judged yet."""
        self._unseen.add(path)
        self._is_disturbed = True

    def restrict(self) -> None:
        """All may have other CPUs than before, and no event says so."""
        self._unannounced.add(self._kernel.root)
        self.disturb(self._kernel.root)

    def begin(
        self,
        cgroups: Mapping[str, str],
        named: Collection[str],
        *,
        standby: bool = False,
        keep_unseen: bool = False,
        partial: bool = False,
    ) -> None:
        """A pass of ours begins, which sees all that others did before.

        Args:
            cgroups: those that exist, by short name.
            named: the paths of those that the runtime has named. An unnamed one that the spec
                moves is not known to be the exclusive container any more.
            standby: it is the standby's.
            keep_unseen: it reads nothing.
            partial: it reads only the cgroups that events have named.
        """
        self._keys = {path: container_of(short) for short, path in cgroups.items()}
        self._named = frozenset(named)
        if not keep_unseen:
            self._unannounced = self._unannounced if partial else set()
            self._unseen = set(self._unannounced)
        self._is_standby = standby
        self._is_disturbed = self._kernel.is_restricted or (keep_unseen and self._is_disturbed)
        tree = self._kernel.read()
        if not keep_unseen:
            self.held = {
                path: cpus & self._has_or_regains(path, tree) for path, cpus in self.held.items()
            }
        self._intruded = {
            (one.owner, cpu) for one in shared(self.held, _has(tree)) for cpu in one.cpus
        }

    def _has_or_regains(self, path: str, tree: Tree) -> CpuSet:
        """The CPUs that count when a pass begins: not what others took and the spec takes, too."""
        has = tree.cgroups[path].effective_cpus if path in tree.cgroups else CpuSet()
        return has | self._owned.get(self._key(path), CpuSet())

    def hold(self, cgroups: Mapping[str, str]) -> None:
        """Count as reported what each exclusive container of the spec has alone."""
        has = _has(self._kernel.read())
        for short, path in cgroups.items():
            if container_of(short) in self._owned and short.count("/") == 1:
                self.held[path] = alone(path, has)

    def tell(self, told: Mapping[str, CpuSet]) -> None:
        """The status reports these cgroups exclusive on these CPUs."""
        self.held = dict(told)
        tree = self._kernel.read()
        for path, cpus in told.items():
            if path not in tree.cgroups:
                continue
            has = tree.cgroups[path].effective_cpus
            if has != cpus and not self._is_unseen(path):
                raise BrokenLawError("I5", f"{path} is reported exclusive on {cpus} and has {has}")
        if found := self.sharing(tree):
            raise BrokenLawError("I5", f"reported exclusive and shared: {sorted(found)[:3]}")

    def before(self, write: Write) -> None:
        """Judge what is to be written, and note what is shared already."""
        if self.expect_no_write:
            raise BrokenLawError("I4", f"written after a restart: {write}")
        super().before(write)
        self._had = _has(self._kernel.read())

    def after(self, write: Write) -> None:
        """Judge the tree after one write."""
        super().after(write)
        tree = self._kernel.read()
        if self._is_standby:
            self._check_standby(tree, write)
        if not self._is_disturbed and self._kernel.version is Version.V2:
            self.check_effect(write, tree)

    def check_end(self, cgroups: Mapping[str, str]) -> None:
        """Every owner has its CPUs, and no cgroup that is not related to it has any of them."""
        tree = self._kernel.read()
        owners: dict[Key, list[str]] = {}
        for short, path in cgroups.items():
            if container_of(short) in self._owned and short.count("/") == 1:
                owners.setdefault(container_of(short), []).append(path)
        has = _has(tree)
        for key, paths in owners.items():
            for path in paths:
                if has[path] != self._owned[key]:
                    raise BrokenLawError(
                        "end", f"{path} has {has[path]} instead of {self._owned[key]}"
                    )
            for one in shared(dict.fromkeys(paths, self._owned[key]), has):
                if one.other not in paths:
                    raise BrokenLawError("end", f"{one.other} has {one.cpus} of {key}")

    def counts(self, owner: str, other: str, cpu: int) -> bool:
        """Whether a reported cgroup must not share a CPU that it still has."""
        key = self._keys.get(owner)
        if key not in self._owned or self._is_unseen(other) or self._key(other) == key:
            return False
        if cpu in self._owned[key]:
            return True
        if self._kernel.is_restricted:  # what is written of other CPUs can have any effect
            return False
        moves = owner in self._named
        is_parked = self._key(other) in self._owned
        return moves and (is_parked or (owner, cpu) not in self._intruded)

    def _check_standby(self, tree: Tree, write: Write) -> None:
        if self._is_disturbed:
            return
        exclusive = CpuSet.union(self._owned.values())
        for path, key in self._keys.items():
            if not key[0] or path not in tree.cgroups or path not in self._had:
                continue
            has, had = tree.cgroups[path].effective_cpus, self._had[path]
            if (has - had) & exclusive:
                raise BrokenLawError("standby", f"{write} grants {path} {has - had}")
            if self._owned.get(key) == had != has:
                raise BrokenLawError("standby", f"{write} moves {path} from {had} to {has}")

    def _key(self, path: str) -> Key:
        return self._keys.get(path, ("", ""))

    def _is_unseen(self, path: str) -> bool:
        return any(contains(one, path) for one in self._unseen)


def _has(tree: Tree) -> dict[str, CpuSet]:
    """The effective CPUs of each cgroup."""
    return {path: one.effective_cpus for path, one in tree.cgroups.items()}
