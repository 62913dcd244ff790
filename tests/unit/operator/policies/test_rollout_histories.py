"""Random histories of policies: the pace holds whatever changes a node, and all follow in the end.

The changes are counted where they are written, by what the NodeAssignments say.
"""

from collections.abc import Callable
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from numapin_api.cpuset import CpuSet
from numapin_api.schema.plain_assignment import NodeAssignmentSpec
from numapin_client.resources import Key
from numapin_operator.observe.assignments.view import AssignmentView
from numapin_operator.observe.records import NodeView
from support.fakes.cluster import FakeCluster
from support.fakes.operator import Operator
from support.values.operator import condition, enforcer_status, node_view, pod_view

NODES = tuple(f"node-{number}" for number in range(8))
MOST = 2
"""The nodes that change at the same time, of more than so many."""

BASE: dict[str, Any] = {"rollout": {"maxConcurrent": MOST}, "releaseDelay": "1h"}
STALLED = [condition("Ready", False), condition("Stalled", True, "KubeletStaticPolicy")]


class CountingCluster(FakeCluster):
    """Records each write by which too many nodes change, in `violations`."""

    def __init__(self) -> None:
        super().__init__()
        self.governing: Callable[[str], str] = lambda _: ""
        self.changing: set[str] = set()
        self.exempt: set[str] = set()
        """Nodes whose enforcer refused what they had."""
        self.violations: list[str] = []

    async def replace_spec(
        self,
        before: AssignmentView,
        node: NodeView,
        spec: NodeAssignmentSpec,
        *,
        as_lines: bool = False,
    ) -> AssignmentView:
        name = node.name
        written = NodeAssignmentSpec.from_wire(self.assignments[name]["spec"])
        if written.pools is not None and _settings(written) != _settings(spec):
            self.begin(name, spec)
        return await super().replace_spec(before, node, spec, as_lines=as_lines)

    def begin(self, name: str, spec: NodeAssignmentSpec) -> None:
        assert spec.policy is not None
        to = spec.policy.name
        if to != self.governing(name):
            self.violations.append(f"{name} changes by {to}, which does not govern it")
        conditions = self.assignments[name].get("status", {}).get("conditions", ())
        if any(one["type"] == "Stalled" for one in conditions):
            self.exempt.add(name)
        if name in self.exempt:
            self.changing.discard(name)
        if name in self.exempt | self.changing:
            return
        self.changing.add(name)
        now = [one for one in self.changing if self.governing(one) == to]
        governed = [one for one in NODES if self.governing(one) == to]
        if len(now) > MOST and len(governed) > MOST:
            self.violations.append(f"{now} change to {to}")


def _settings(spec: NodeAssignmentSpec) -> tuple[object, ...]:
    policy, pools = spec.policy, spec.pools
    return policy and (policy.name, policy.uid), pools and pools.reserved, spec.cpu_quota


class World:
    """Eight nodes of two pools under up to three policies, and an operator that may restart."""

    def __init__(self) -> None:
        self.cluster = CountingCluster()
        self.pools = {name: "ab"[number % 2] for number, name in enumerate(NODES)}
        self.pods: dict[str, str] = {}
        self.mute: set[str] = set()
        self.bad: set[str] = set()
        self.start()

    def start(self) -> None:
        self.operator = Operator(self.cluster)
        self.cluster.governing = self.governing
        for name in NODES:
            self.put_node(name)
        for pod, node in self.pods.items():
            self.operator.state.put_pod(Key(pod, "default"), pod_view(pod, "1", node=node))

    def governing(self, name: str) -> str:
        return next((one.name for one in self.operator.state.policies_of(name)), "")

    def put_node(self, name: str) -> None:
        self.operator.state.put_node(node_view(name, {"pool": self.pools[name]}))

    def edit(self, policy: str, **changed: Any) -> None:
        """Edit a policy, or create it."""
        before = self.cluster.policies.get(policy, {}).get("spec", BASE)
        self.cluster.put_policy(policy, before | changed)

    def replace(self, policy: str, **changed: Any) -> None:
        """Delete a policy and create it again, so that its generation is 1."""
        self.cluster.policies.pop(policy, None)
        self.edit(policy, **changed)

    async def work(self) -> None:
        for _ in range(2):
            self.operator.observe()
            await self.operator.work_until_idle()
            await self.operator.statuses.write(set(self.cluster.policies))

    def answer(self, name: str) -> None:
        if name in self.mute:
            return
        generation = self.cluster.assignments[name]["metadata"]["generation"]
        conditions = STALLED if name in self.bad else None
        self.cluster.put_status(name, enforcer_status(generation, conditions=conditions))
        self.cluster.changing.discard(name)
        if name not in self.bad:
            self.cluster.exempt.discard(name)

    async def step(self, event: str, node: str, policy: str, count: int) -> None:
        if event in EDITS:
            self.edit_by(event, policy, count)
        elif event == "restart":
            self.start()
        elif event == "answer":
            for name in NODES[count - 1 :: 2]:
                self.answer(name)
        else:
            self.change_node(event, node, count)
        await self.work()
        assert not self.cluster.violations

    def edit_by(self, event: str, policy: str, count: int) -> None:
        match event:
            case "edit":
                self.edit(policy, reserved={"count": count}, cpuQuota="Keep", mode="Static")
            case "fault":
                self.edit(policy, cpuQuota="Halved", reserved={"count": count})
            case "mode None":
                self.edit(policy, mode="None", cpuQuota="Keep")
            case "priority":
                self.edit(policy, priority=count)
            case "selector":
                self.edit(policy, nodeSelector={"pool": "abc"[count % 3]} if count < 4 else {})
            case "delete":
                self.cluster.policies.pop(policy, None)
            case _:
                self.replace(policy, reserved={"count": count})

    def change_node(self, event: str, node: str, count: int) -> None:
        match event:
            case "label":
                self.pools[node] = "ab"[count % 2]
                self.put_node(node)
            case "pod":
                pod = f"pod-{len(self.pods)}"
                self.pods[pod] = node
                self.operator.state.put_pod(Key(pod, "default"), pod_view(pod, "1", node=node))
            case "stall" | "heal":
                (self.bad.add if event == "stall" else self.bad.discard)(node)
                self.answer(node)
            case _:
                (self.mute.add if event == "mute" else self.mute.discard)(node)

    async def all_is_well(self) -> None:
        """Everything answers, and every policy can work, for long enough."""
        self.bad.clear()
        self.mute.clear()
        for policy in self.cluster.policies:
            self.edit(policy, cpuQuota="Keep", mode="Static")
        for _ in range(3 * len(NODES)):
            before = self.cluster.writes
            for name in NODES:
                self.answer(name)
            await self.work()
            if self.cluster.writes == before:
                return


EDITS = ("edit", "fault", "mode None", "priority", "selector", "delete", "replace")
EVENTS = (
    *EDITS,
    *("edit", "edit", "restart", "restart", "label", "pod", "stall", "heal", "mute", "hear"),
    *("answer", "answer", "answer"),
)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(EVENTS),
        st.sampled_from(NODES),
        st.sampled_from(("one", "two", "three")),
        st.integers(1, 4),
    ),
    max_size=25,
)


WITHDRAWN = [
    ("delete", "node-0", "one", 1),
    ("edit", "node-0", "one", 1),
    ("label", "node-0", "one", 1),
    ("mode None", "node-0", "one", 1),
    ("edit", "node-0", "one", 1),
]
"""Nodes follow another object of their policy, which changes nothing; then a release is withdrawn
while they wait for their turn."""


@settings(deadline=None, max_examples=30)
@given(STEPS)
@example(WITHDRAWN)
async def test_the_pace_holds_and_all_follow(steps: list[tuple[str, str, str, int]]) -> None:
    world = World()
    world.edit("one", reserved={"count": 1})
    world.edit("two", reserved={"count": 2}, nodeSelector={"pool": "b"}, priority=1)
    for _ in range(3):
        await world.work()
        for name in NODES:
            world.answer(name)
    for step in steps:
        await world.step(*step)
    await world.all_is_well()
    for name in NODES:
        governing = world.governing(name)
        if not governing:
            continue
        written = world.cluster.assignments[name]["spec"]
        assert written["policy"]["name"] == governing
        count = world.cluster.policies[governing]["spec"].get("reserved", {}).get("count", 1)
        held = CpuSet.union(CpuSet.parse(one["cpus"]) for one in written["containers"])
        assert CpuSet.parse(written["pools"]["reserved"]) == CpuSet(range(count)) - held
