"""Why a container does not have its CPUs exclusively, by what the kernel answers. Does no I/O."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from numapin_api.conditions.reasons import Reason
from numapin_api.cpuset import CpuSet
from numapin_api.schema.plain import ContainerAssignment, NodeAssignmentSpec
from numapin_enforcer.cgroups.naming import Driver, is_literal, kubelet_of, other_driver
from numapin_enforcer.cgroups.tree import Cgroup, OutsideCgroup, Tree, contains, parent, related
from numapin_enforcer.plan.containment import Desired
from numapin_enforcer.plan.cpu_index import CpuIndex
from numapin_enforcer.status.in_force.lack import Lack, name_of
from numapin_enforcer.status.in_force.thread_cpus import Confined, Intruder


@dataclass(frozen=True, slots=True)
class Evidence:
    """What decides besides the cpusets whether a container is reported exclusive.

    Attributes:
        restart_spec: the spec that a restart would load now; None once `spec` is on disk. A
            container must be exclusive in both.
        stale_cpus: cgroup to CPUs that the runtime or systemd may still write there at any moment.
        starting: cgroups of exclusive containers without a process: they start or have ended. CRI-O
            may keep the cgroup of a container that ended.
        deserted: those of containers that run by the runtime's word, and have no process for long.
        outside: cgroups of containers outside of the kubelet's tree.
        strays: pod's UID and name of the kubelet's containers that are not in the kubelet's tree.
        intruders: threads that do not keep to their cgroup.
        confined: containers whose processes may use only a part of its CPUs.
    """

    restart_spec: NodeAssignmentSpec | None = None
    stale_cpus: Mapping[str, CpuSet] = field(default_factory=dict)
    starting: frozenset[str] = frozenset()
    deserted: frozenset[str] = frozenset()
    outside: tuple[OutsideCgroup, ...] = ()
    strays: frozenset[tuple[str, str]] = frozenset()
    intruders: tuple[Intruder, ...] = ()
    confined: tuple[Confined, ...] = ()


NO_EVIDENCE: Final = Evidence()


@dataclass(frozen=True, slots=True)
class _Rival:
    """A cgroup that may use CPUs of an exclusive container; `later` if only after a stale write.

    `threads` is set if only threads in it may, and not the cgroup.
    """

    path: str
    cpus: CpuSet
    later: bool
    threads: Intruder | None = None


class Exclusivity:
    """Judges each exclusive container of one tree, as read back after all writes."""

    def __init__(self, index: CpuIndex, evidence: Evidence) -> None:
        self._index, self._evidence = index, evidence
        self._tree, self._wanted = index.tree, index.wanted
        self._idle = evidence.starting | evidence.deserted
        self._confined = {one.path: one for one in reversed(evidence.confined)}
        self._rivals = self._find_rivals()

    def lack(self, path: str) -> Lack | None:
        """Why the container with this cgroup is not exclusive; None if it is, or must not be."""
        want, found = self._wanted[path], self._tree.cgroups[path]
        one = want.container
        if one is None or not one.exclusive:
            return None
        if path in self._evidence.deserted:
            why = (
                "has no process in its cgroup: the runtime keeps them elsewhere (as gVisor does), "
                "or the kernel moved them when its CPUs went offline; create the pod again without "
                "such a runtime"
            )
            return Lack(name_of(one), Reason.PROCESSES_ELSEWHERE, why, needs_help=True)
        if not want.exclusive:
            why = f"has no CPUs of its own, because CPU {one.cpus} or the shared pool is offline"
            return Lack(name_of(one), Reason.CPUS_OFFLINE, why)
        if found.effective_cpus != want.cpus:
            return Lack(name_of(one), Reason.CPUS_WITHHELD, _why_withheld(self._tree, found, want))
        return self._shared(path, one) or self._late(path, one) or self._inherited(path, one)

    def _late(self, path: str, one: ContainerAssignment) -> Lack | None:
        """An update that the kubelet sent before writes the set that the runtime had then."""
        late = self._evidence.stale_cpus.get(path, CpuSet()) - self._wanted[path].cpus
        if not late:
            return None
        return Lack(
            name_of(one), Reason.APPLYING, f"waits: the runtime may still give it CPU {late}"
        )

    def _inherited(self, path: str, one: ContainerAssignment) -> Lack | None:
        """Its processes may use only some of its CPUs."""
        found = self._confined.get(path)
        if found is None:
            return None
        return Lack(name_of(one), Reason.INHERITED_AFFINITY, found.why, needs_help=True)

    def _shared(self, path: str, one: ContainerAssignment) -> Lack | None:
        rival = self._rivals.get(path)
        if rival is None:
            return None
        if rival.threads is not None:
            return Lack(name_of(one), Reason.CPUS_SHARED, rival.threads.why(rival.cpus))
        if rival.path not in self._wanted:
            drivers = _two_drivers(rival.path, self._tree.root)
            why = (
                f"shares CPU {rival.cpus} with the container in cgroup {rival.path}, which is "
                f"outside of the kubelet's cgroups: {drivers or 'end it, or give it other CPUs'}"
            )
            return Lack(name_of(one), Reason.CPUS_SHARED, why, needs_help=True)
        other = self._wanted[rival.path].container
        who = name_of(other) if other else f"cgroup {rival.path}"
        if rival.later:
            why = f"waits: the runtime or systemd may still give {who} CPU {rival.cpus}"
            return Lack(name_of(one), Reason.APPLYING, why)
        why = f"shares CPU {rival.cpus} with {who}"
        return Lack(name_of(one), Reason.CPUS_SHARED, why)

    def _find_rivals(self) -> dict[str, _Rival]:
        """The first rival of each exclusive container; its own tree and ancestors are none."""
        owners, rivals = self._owners(), dict[str, _Rival]()
        exclusive_cpus, stale_cpus = CpuSet(owners), self._evidence.stale_cpus
        cgroups = {one.path: one for one in self._index.having(exclusive_cpus)}
        every = self._tree.cgroups
        cgroups |= {path: every[path] for path in sorted(stale_cpus) if path in every}
        for path, found in cgroups.items():
            stale = stale_cpus.get(path, CpuSet())
            for cpu in (found.effective_cpus | stale) & exclusive_cpus:
                for owner in owners[cpu]:
                    known = rivals.get(owner)
                    if (known is None or known.later) and self._is_rival(path, owner):
                        cpus = self._wanted[owner].cpus
                        now = found.effective_cpus & cpus
                        rivals[owner] = _Rival(path, now or stale & cpus, later=not now)
        for intruder in self._evidence.intruders:
            for owner in {one for cpu in intruder.cpus & exclusive_cpus for one in owners[cpu]}:
                known = rivals.get(owner)
                if (known is None or known.later) and self._is_rival(intruder.path, owner):
                    cpus = self._wanted[owner].cpus & intruder.cpus
                    rivals[owner] = _Rival(intruder.path, cpus, later=False, threads=intruder)
        for other in self._evidence.outside:
            for owner in {owner for cpu in other.cpus & exclusive_cpus for owner in owners[cpu]}:
                cpus = self._wanted[owner].cpus & other.cpus
                rivals.setdefault(owner, _Rival(other.path, cpus, later=False))
        return rivals

    def _owners(self) -> dict[int, list[str]]:
        """Each exclusive CPU, with the cgroups of the containers that must have it."""
        owners: dict[int, list[str]] = {}
        for one in self._index.assigned():
            want = self._wanted[one.path]
            if want.exclusive and self._is_whole(one.path):
                for cpu in want.cpus:
                    owners.setdefault(cpu, []).append(one.path)
        return owners

    def _is_whole(self, path: str) -> bool:
        """Whether it is a container's own cgroup, not one inside it."""
        above = self._tree.parents.get(path)
        return above is None or self._wanted[above].container is None

    def _is_rival(self, path: str, owner: str) -> bool:
        """An init container that ended may leave an empty cgroup with the next one's CPUs."""
        if related(path, owner):
            return False
        pod = parent(owner)
        return not any(contains(one, path) and parent(one) == pod for one in self._idle)


def withheld(index: CpuIndex) -> tuple[Lack, ...]:
    """Cgroups that have other CPUs than they must have."""
    tree, wanted = index.tree, index.wanted
    return tuple(
        Lack(f"cgroup {one.path}", Reason.CPUS_WITHHELD, _why_withheld(tree, one, wanted[one.path]))
        for one in index.withheld()
        if one.path != tree.root
    )


def stray(one: ContainerAssignment, evidence: Evidence, kubepods: str) -> Lack:
    """An exclusive container that runs, and has no cgroup in `kubepods`, the kubelet's tree."""
    names = (f"pod{one.pod_uid}", f"pod{one.pod_uid.replace('-', '_')}")
    own = (other.path for other in evidence.outside if any(name in other.path for name in names))
    remedies = (f"{why} ({path})" for path in own if (why := _two_drivers(path, kubepods)))
    remedy = next(remedies, None) or (
        "set --cgroup-root to the kubelet's cgroupRoot, and use no runtime that keeps containers "
        "in a virtual machine"
    )
    why = f"runs outside of the kubelet's cgroups: {remedy}"
    return Lack(name_of(one), Reason.PROCESSES_ELSEWHERE, why, needs_help=True)


def _two_drivers(path: str, kubepods: str) -> str:
    """What to do if the name of a cgroup shows two cgroup drivers; empty if it does not.

    That may be past, unless systemd is the kubelet's driver and the name is a literal one: neither
    runc nor CRI-O creates any other container elsewhere when asked for the kubelet's tree.
    """
    runtime = other_driver(path, kubepods)
    if runtime is None:
        return ""
    kubelet = Driver.SYSTEMD if runtime is Driver.CGROUPFS else Driver.CGROUPFS
    is_now = is_literal(path) and kubelet_of(kubepods) is Driver.SYSTEMD
    past = "" if is_now else ", or did so when the container was created"
    enough = "; if both use one driver by now, that is enough" if past else ""
    return (
        f"the runtime uses the cgroup driver {runtime} and the kubelet {kubelet}{past}: "
        'set SystemdCgroup = true (containerd) or cgroup_manager = "systemd" (CRI-O), and the '
        f"kubelet's cgroupDriver: systemd, and create the pods again{enough}"
    )


def _why_withheld(tree: Tree, found: Cgroup, want: Desired) -> str:
    why = f"has CPU {found.effective_cpus} instead of {want.cpus}"
    limit, path = None, found.path
    while path != tree.root:
        path = tree.parents[path]
        if not want.cpus <= tree.cgroups[path].effective_cpus:
            limit = tree.cgroups[path]  # the topmost one counts
    if limit is not None:
        return (
            f"{why}, because the kernel gives cgroup {limit.path} only {limit.effective_cpus}: "
            "give the rest to its parents, or end the cpuset partition that has it"
        )
    return f"{why}: another program sets it, or a cpuset partition has them"
