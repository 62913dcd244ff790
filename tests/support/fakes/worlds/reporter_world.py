"""A status reporter whose node accepted an assignment, and fakes of all that it needs."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.schema.plain import RuntimeStatus
from numapin_api.topology import NO_CACHE, Cpu, NumaNode, Topology
from numapin_daemon.probes.health import LoopHealth
from numapin_enforcer.assignment.acceptance import Acceptance
from numapin_enforcer.cgroups.naming import CgroupNaming, Driver
from numapin_enforcer.cgroups.tree import Cgroup, Tree, Version, tree_of
from numapin_enforcer.node.dra_claims import DraClaims
from numapin_enforcer.plan.desired import desire
from numapin_enforcer.plan.drift import Drift
from numapin_enforcer.status.reporter import BackgroundReport, Kernel, PassResult, StatusReporter
from numapin_enforcer.status.status_builder import Report
from support.fakes.manual_clock import ManualClock

ID = "a" * 64
ROOT, POD = "kubepods", "kubepods/pod1"
CONTAINER = f"{POD}/{ID}"
NAMING, MEMS = CgroupNaming(Driver.CGROUPFS), MemSet((0,))
MACHINE = Topology(
    cpus=tuple(Cpu(cpu, cpu, 0, NO_CACHE, 0) for cpu in range(4)),
    numa_nodes=(NumaNode(0, 1 << 30),),
)
CONTAINERS = [
    {
        "podUID": "1",
        "namespace": "d",
        "pod": "p",
        "container": "c",
        "cpus": "3",
        "exclusive": True,
    }
]
BODY: dict[str, Any] = {
    "metadata": {"name": "n", "uid": "u1", "generation": 1},
    "spec": {"pools": {"reserved": "0", "shared": "0-2"}, "containers": CONTAINERS},
    "status": {"driftCount": 7},
}
FINE = PassResult(conflict="", unreadable=None, failures=(), failed_passes=0)


def background(**more: Any) -> BackgroundReport:
    nothing: dict[str, Any] = {
        "runtime": RuntimeStatus("containerd", "v2"),
        "stale_cpus": {},
        "stalled": (),
        "working": (),
        "note": "",
        "finishes_soon": False,
    }
    return BackgroundReport(**nothing | more)


def cgroup(path: str, cpus: str) -> Cgroup:
    found = CpuSet.parse(cpus)
    return Cgroup(path, found, MEMS, found, MEMS)


TREE = tree_of(Version.V2, ROOT, [cgroup(ROOT, "0-3"), cgroup(POD, "0-3"), cgroup(CONTAINER, "3")])


class World:
    """A reporter whose node accepted an assignment of CPU 3."""

    def __init__(self) -> None:
        self.acceptance = Acceptance("n")
        self.acceptance.offer(BODY, MACHINE)
        self.empty: set[str] = set()
        self.clock = ManualClock()
        self.published: list[Report] = []
        self.passed: list[bool] = []
        self.drifts: list[tuple[Drift, Any]] = []
        self.posted: list[tuple[Any, Any]] = []
        self.assignments = SimpleNamespace(body=BODY, problem="")
        self.copy = SimpleNamespace(problem="", restart_spec=None, obstacles=lambda: ())
        self.kubepods = SimpleNamespace(
            tree=SimpleNamespace(
                naming=NAMING, files=SimpleNamespace(has_tasks=lambda path: path not in self.empty)
            ),
            problem="",
            watch_problem="",
            version=Version.V2,
        )
        self.machine = SimpleNamespace(topology=MACHINE, free_hugepages=dict, limits="")
        self.health = LoopHealth(60, self.clock)
        self.claims = DraClaims(Path("/nonexistent"))
        self.reporter = StatusReporter(
            assignments=cast("Any", self.assignments),
            acceptance=self.acceptance,
            local_copy=cast("Any", self.copy),
            kubepods=cast("Any", self.kubepods),
            claims=self.claims,
            machine=cast("Any", self.machine),
            publisher=cast(
                "Any",
                SimpleNamespace(
                    publish=self.published.append,
                    passed=lambda: self.passed.append(True),
                    problem="",
                ),
            ),
            events=cast(
                "Any",
                SimpleNamespace(
                    drifted=lambda *one: self.drifts.append(one),
                    post=lambda *one: self.posted.append(one),
                ),
            ),
            health=self.health,
            boot_id="boot-1",
            clock=self.clock,
        )

    def report(
        self, result: PassResult = FINE, tree: Tree | None = TREE, **more: Any
    ) -> tuple[str, str]:
        """Report a pass; returns reason and message of Ready."""
        accepted = self.acceptance.accepted
        assert accepted is not None
        names = {ID: "c"}
        desired = desire(accepted.spec, tree, NAMING, names, MACHINE) if tree else {}
        of_kernel = ("wide", "unseen", "foreign", "inherited")
        seen = {name: more.pop(name) for name in of_kernel if name in more}
        self.reporter.report(result, Kernel(tree, desired, **seen), background(**more))
        ready = next(one for one in self.published[-1].verdicts if one.type == "Ready")
        return ready.reason, ready.message

    @property
    def missing(self) -> dict[str, str]:
        return dict(self.health.health().missing())

    @property
    def exclusive(self) -> list[bool]:
        return [one.exclusive for one in self.published[-1].content.containers]
