"""The runtime gets what the kernel has for exclusive containers, and nothing for others."""

import pytest

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.schema.plain import ContainerAssignment
from numapin_enforcer.cgroups.tree import Cgroup, Version, tree_of
from numapin_enforcer.plan.containment import Desired
from numapin_enforcer.runtime.interface import ContainerResources
from numapin_enforcer.runtime.updates.resources_to_send import (
    ResourcesToSend,
    resources_to_send,
)

ROOT, POD = "kubepods", "kubepods/pod1"
A, B = f"{POD}/{'a' * 64}", f"{POD}/{'b' * 64}"
BOTH, ONE = MemSet([0, 1]), CpuSet([1])


def resources(
    found: str,
    *,
    exclusive: bool = True,
    mems: str = "",
    bound: str | None = None,
    before: ContainerResources | None = None,
) -> ResourcesToSend | None:
    """What must be sent for a container that should have CPU 1; it has `found` and `bound`."""
    cpus, nodes = CpuSet.parse(found), MemSet.parse(mems)
    has = BOTH if bound is None else MemSet.parse(bound)
    container = ContainerAssignment(
        pod_uid="1",
        namespace="d",
        pod="p",
        container="c",
        cpus=ONE,
        mems=nodes,
        exclusive=exclusive,
    )
    tree = tree_of(
        Version.V1, ROOT, [Cgroup(path, cpus, has, cpus, has) for path in (ROOT, POD, A)]
    )
    wanted = Desired(ONE, nodes or BOTH, container, exclusive=exclusive)
    return resources_to_send({A: wanted}, tree, A, before)


OLD, ON_NODE_1 = ContainerResources(CpuSet([3])), ContainerResources(ONE, MemSet([1]))


def new(cpus: CpuSet, mems: MemSet = MemSet()) -> ResourcesToSend:
    return ResourcesToSend(ContainerResources(cpus, mems), are_new=True)


@pytest.mark.parametrize(
    ("expected", "found"),
    [
        (new(ONE), resources("1")),
        (new(ONE), resources("1", mems="0")),
        (new(ONE, MemSet([0])), resources("1", mems="0", bound="0")),
        (new(ONE, MemSet([1])), resources("1", mems="0", before=ON_NODE_1)),
        (None, resources("0")),
        (ResourcesToSend(OLD, are_new=False), resources("0", before=OLD)),
        (None, resources("1", exclusive=False)),
        (new(ONE), resources("1", exclusive=False, before=OLD)),
        (
            new(ONE, BOTH),
            resources("1", exclusive=False, before=ContainerResources(CpuSet([3]), MemSet([0]))),
        ),
    ],
    ids=[
        "exclusive",
        "memory that is not bound yet",
        "memory that is bound",
        "memory that is not moved yet",
        "exclusive, and the kernel does not have it yet",
        "sent before, and the kernel does not have it yet",
        "shared",
        "exclusive before",
        "exclusive before, with memory",
    ],
)
def test_what_is_sent(expected: ResourcesToSend | None, found: ResourcesToSend | None) -> None:
    assert found == expected


def test_nothing_is_sent_for_a_cgroup_without_desired_cpus() -> None:
    tree = tree_of(Version.V1, ROOT, [Cgroup(ROOT, ONE, BOTH, ONE, BOTH)])
    assert resources_to_send({}, tree, ROOT, OLD) is None
