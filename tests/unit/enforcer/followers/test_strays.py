"""Containers that the runtime, the kubelet or others put where they do not belong."""

from numapin_api.cpuset import CpuSet
from numapin_enforcer.cgroups.tree import OutsideCgroup
from numapin_enforcer.plan.drift import Cause
from numapin_enforcer.runtime.container_names import LISTED_WITHIN_SECONDS
from numapin_enforcer.runtime.interface import (
    ContainerResources,
)
from support.fakes.worlds.followed_node import (
    ALL,
    CONTAINER,
    CPU_2,
    CPU_3,
    ID,
    POD,
    Node,
)


async def test_a_runtime_that_does_not_know_a_running_container_is_reported(node: Node) -> None:
    """CRI-O or cri-dockerd beside containerd: another runtime answers on the socket."""
    del node.runtime.known[ID]
    await node.enforce(CPU_3)
    assert node.reasons == ([], [])
    await node.clock.advance(LISTED_WITHIN_SECONDS)
    await node.make_pass(CPU_3)
    (obstacle,) = node.stalled
    assert obstacle.reason == "ContainerUnknown"
    assert f"({ID[:13]} of pod d/p is one)" in obstacle.message
    node.model.leave(CONTAINER)
    await node.make_pass(CPU_3)
    assert node.reasons == ([], [])
    node.model.enter(CONTAINER)
    node.runtime.has(ID, "c")
    await node.clock.advance(LISTED_WITHIN_SECONDS)
    await node.make_pass(CPU_3)
    assert node.reasons == ([], [])


async def test_containers_outside_of_the_kubelets_cgroups_are_reported(node: Node) -> None:
    stray, cgroup = "e" * 64, OutsideCgroup(f"k8s.io/{'e' * 64}", ALL)
    node.runtime.has(stray, "stray")
    node.pods.elsewhere[stray] = cgroup
    await node.enforce(CPU_3)
    report = node.facts()
    assert report.evidence.outside == (cgroup,)
    assert report.running.keys() == {ID, stray}


async def test_a_shared_container_on_exclusive_cpus_is_sent_to_the_runtime_once(
    node: Node,
) -> None:
    """The runtime may remember the set of a kubelet that had the static policy before."""
    id_ = "b" * 64
    shared = f"{POD}/cri-containerd-{id_}.scope"
    node.model.make(shared)
    node.model.enter(shared)
    node.runtime.has(id_, "side")
    await node.enforce(CPU_3)
    assert [one for one, _ in node.runtime.updates] == [ID]
    for _ in range(3):
        node.model.groups[shared].cpus = ALL
        node.model.written.append(shared)
        done = await node.make_pass(CPU_3)
        assert [one.cause for one in done.drifts] == [Cause.INTRUSION]
        assert node.model.groups[shared].cpus == CpuSet(range(3))
    assert node.runtime.updates[1:] == [(id_, ContainerResources(CpuSet(range(3))))]
    await node.make_pass(CPU_2)
    sent = [str(resources.cpus) for one, resources in node.runtime.updates if one == id_]
    assert sent == ["0-2", "0-1,3"]
