"""The cgroup of the enforcer's own container, which only the runtime may set (`nsdelegate`)."""

import errno

import pytest

from numapin_api.cpuset import CpuSet
from numapin_enforcer.cgroups.errors import error_of
from numapin_enforcer.cgroups.write import Write
from support.fakes.worlds.followed_node import ALL, BURSTABLE, CPU_2, CPU_3, POD, Node

OWN_ID = "f" * 64
OWN_POD = f"{BURSTABLE}/kubepods-burstable-pod2.slice"


def place(node: Node, monkeypatch: pytest.MonkeyPatch, pod: str) -> str:
    """Run a container whose cgroup asks for CPUs 0-2, and which only the runtime may set."""
    own = f"{pod}/cri-containerd-{OWN_ID}.scope"
    if pod not in node.model.groups:
        node.model.make(pod)
    node.model.make(own)
    node.model.enter(own)
    node.model.groups[own].cpus = CpuSet(range(3))
    node.runtime.has(OWN_ID, "enforcer")
    write = node.model.write

    def refuse(one: Write) -> None:
        if one.path == own and one.value != ALL:
            raise error_of(own, str(one.value), OSError(errno.EPERM, "not permitted"))
        write(one)

    monkeypatch.setattr(node.model, "write", refuse)
    return own


def sent(node: Node) -> list[str]:
    return [str(resources.cpus) for id_, resources in node.runtime.updates if id_ == OWN_ID]


async def test_the_runtime_has_it_ask_for_all_so_that_its_pod_can_be_narrowed(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = place(node, monkeypatch, OWN_POD)
    await node.enforce(CPU_3)
    assert (await node.make_pass(CPU_3)).settled
    assert sent(node) == []
    done = await node.make_pass(CPU_2)
    assert not done.settled
    assert sent(node) == [str(ALL)]
    for spec, shared in ((CPU_2, "0-1,3"), (CPU_3, "0-2"), (CPU_2, "0-1,3")):
        node.model.written.append(own)
        done = await node.make_pass(spec)
        assert done.settled
        assert str(node.model.read_one(own).effective_cpus) == shared
    assert sent(node) == [str(ALL)]


async def test_a_container_that_ended_is_forgotten(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = place(node, monkeypatch, OWN_POD)
    await node.enforce(CPU_2)
    assert sent(node) == [str(ALL)]
    del node.runtime.known[OWN_ID]
    node.model.leave(own)
    node.model.remove(own)
    for _ in range(2):
        await node.make_pass(CPU_3)
    assert sent(node) == [str(ALL)]
    assert node.reasons == ([], [])


async def test_beside_an_exclusive_container_it_does_not_ask_for_the_cpus_of_its_pod(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    place(node, monkeypatch, POD)
    await node.enforce(CPU_2)
    done = await node.make_pass(CPU_2)
    assert [one.error.number for one in done.failures] == [errno.EPERM]
    assert sent(node) == []
