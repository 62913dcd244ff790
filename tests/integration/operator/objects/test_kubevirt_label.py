"""KubeVirt's label of a Node is true where numapin gives CPUs, on a real API server.

KubeVirt is played: it writes Nodes as `HeartBeat.do` of its virt-handler does.
"""

import asyncio
from collections.abc import AsyncIterator

import pytest

from numapin_client.resources import NODES, Json, Key
from numapin_operator.nodes.decide.kubevirt import CPU_MANAGER
from support.real.operators.operator_world import COMPONENTS, RealWorld
from support.real.waiting import eventually
from support.suite.left_out import since_kubernetes

pytestmark = since_kubernetes("1.36")  # the first with MutatingAdmissionPolicies

NEWER, OLDER = CPU_MANAGER
SCHEDULABLE = "kubevirt.io/schedulable"
HEARTBEAT = "kubevirt.io/heartbeat"
OPT_IN = "numapin.io/kubevirt"


class KubeVirt:
    """Its heartbeat on one Node whose kubelet has the policy none."""

    def __init__(self, world: RealWorld, node: str, labels: tuple[str, ...] = CPU_MANAGER) -> None:
        self.world, self.node, self.labels, self.beats = world, node, labels, 0

    async def beat(self) -> dict[str, str]:
        """One heartbeat; returns what the Node then has of its labels."""
        self.beats += 1
        labels = dict.fromkeys(self.labels, "false") | {SCHEDULABLE: "true"}
        metadata = {"labels": labels, "annotations": {HEARTBEAT: f"beat {self.beats}"}}
        body = await self.world.admin.merge_patch(NODES, Key(self.node), {"metadata": metadata})
        assert body["metadata"]["annotations"][HEARTBEAT] == f"beat {self.beats}"
        assert body["metadata"]["labels"][SCHEDULABLE] == "true"
        return of_kubevirt(body)

    async def opt_in(self, value: str | None = "enabled") -> dict[str, str]:
        """An administrator labels the Node; None: takes the label away."""
        patch: Json = {"metadata": {"labels": {OPT_IN: value}}}
        return of_kubevirt(await self.world.admin.merge_patch(NODES, Key(self.node), patch))


def of_kubevirt(node: Json) -> dict[str, str]:
    """The labels that pods of machines with dedicated CPUs select, or have selected."""
    return {key: text for key, text in node["metadata"]["labels"].items() if key in CPU_MANAGER}


@pytest.fixture
async def kubevirt(world: RealWorld) -> AsyncIterator[KubeVirt]:
    """A labelled Node, where the component of the manifests is applied and in force."""
    file = f"--filename={COMPONENTS / 'kubevirt' / 'label.yaml'}"
    try:
        await asyncio.to_thread(world.plane.kubectl, "apply", file)
        made = KubeVirt(world, (await world.add_node("labelled")).name)
        await made.opt_in()

        async def is_in_force() -> bool:
            return "false" not in (await made.beat()).values()

        await eventually(is_in_force, "the admission policy")
        yield made
    finally:
        await asyncio.to_thread(world.plane.kubectl, "delete", "--ignore-not-found", file)


async def test_no_heartbeat_takes_the_label_from_a_node_where_numapin_pins(
    kubevirt: KubeVirt,
) -> None:
    for _ in range(10):
        assert await kubevirt.beat() == {NEWER: "true", OLDER: "true"}


async def test_kubevirt_before_1_8_gets_no_label_that_it_does_not_know(kubevirt: KubeVirt) -> None:
    world = kubevirt.world
    older = KubeVirt(world, (await world.add_node("older")).name, (OLDER,))
    await older.opt_in()
    assert await older.beat() == {OLDER: "true"}


async def test_other_nodes_have_what_kubevirt_writes(kubevirt: KubeVirt) -> None:
    world = kubevirt.world
    other = KubeVirt(world, (await world.add_node("other")).name)
    for value in (None, "disabled"):
        await other.opt_in(value)
        assert await other.beat() == {NEWER: "false", OLDER: "false"}
    assert await other.opt_in() == {NEWER: "true", OLDER: "true"}, "at once, not with a heartbeat"


async def test_kubevirt_decides_again_once_the_node_is_not_labelled(kubevirt: KubeVirt) -> None:
    assert await kubevirt.opt_in(None) == {NEWER: "true", OLDER: "true"}
    assert await kubevirt.beat() == {NEWER: "false", OLDER: "false"}


async def test_what_is_not_kubevirts_stays(kubevirt: KubeVirt) -> None:
    """Nodes without KubeVirt's labels, and Nodes of which others write something else."""
    world = kubevirt.world
    bare = KubeVirt(world, (await world.add_node("bare")).name)
    assert await bare.opt_in() == {}
    patch: Json = {"metadata": {"labels": {"a": "false"}}}
    body = await world.admin.merge_patch(NODES, Key(bare.node), patch)
    assert (of_kubevirt(body), body["metadata"]["labels"]["a"]) == ({}, "false")
