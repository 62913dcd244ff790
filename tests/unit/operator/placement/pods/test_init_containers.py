"""Init containers are placed where the containers after them fit."""

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from numapin_api.cpuset import CpuSet
from numapin_operator.placement import (
    KUBELET,
    NO_QUIRKS,
    Node,
    PlacementError,
    PodView,
    resolve,
)
from support.values.placement import GIB, machine, pod, policy, resources


def starting(
    name: str, init: list[str], *apps: str, memory: str = "64Mi", **fields: Any
) -> PodView:
    """A pod with an init container for each request of `init`; with `s` at its end, a sidecar."""
    before = [
        {"name": f"i{index}", "resources": resources(cpu.rstrip("s"), memory)}
        | ({"restartPolicy": "Always"} if cpu.endswith("s") else {})
        for index, cpu in enumerate(init)
    ]
    return pod(name, *apps, memory=memory, initContainers=before, **fields)


def numa_nodes(node: Node, placed: PodView) -> dict[str, str]:
    """The NUMA nodes of the CPUs of each container."""
    topology = node.policy.topology
    return {
        one.name: ",".join(
            str(numa_node)
            for numa_node, cpus in topology.numa_cpus.items()
            if not cpus.isdisjoint(CpuSet.from_mask(one.cpus))
        )
        for one in node.allocations[placed.uid].containers
    }


@pytest.mark.parametrize("alignment", ["SingleNUMANode", "Restricted", "BestEffort"])
@pytest.mark.parametrize("memory", ["None", "Static", "Preferred", "SingleNUMA"])
@pytest.mark.parametrize(
    ("init", "apps", "expected"),
    [
        pytest.param(["1"], ["7"], {"i0": "1", "c0": "1"}, id="one"),
        pytest.param(
            ["2", "4", "1"], ["8"], dict.fromkeys(("i0", "i1", "i2", "c0"), "1"), id="three"
        ),
        pytest.param(["1"], ["1", "8"], {"i0": "0", "c0": "0", "c1": "1"}, id="small-one-first"),
        pytest.param(["1s", "1"], ["7"], {"i0": "0", "i1": "1", "c0": "1"}, id="sidecar"),
        pytest.param(["8"], ["1"], {"i0": "1", "c0": "1"}, id="as-the-kubelet"),
    ],
)
def test_they_bind_no_other_container(
    alignment: str, memory: str, init: list[str], apps: list[str], expected: dict[str, str]
) -> None:
    spec = policy(
        reserved={"cpus": "0-1"}, topology={"policy": alignment}, memory={"policy": memory}
    )
    topology = machine(16, 1, 2, memory_bytes=16 * GIB)
    node, asked = Node(resolve(topology, spec)), starting("a", init, *apps)
    node.place(asked)
    assert numa_nodes(node, asked) == expected


def test_the_kubelet_refuses_such_a_pod() -> None:
    spec = policy(reserved={"cpus": "0-1"}, topology={"policy": "SingleNUMANode"})
    asked = starting("a", ["1"], "7")
    with pytest.raises(PlacementError):
        Node(resolve(machine(16, 1, 2), spec, KUBELET)).place(asked)


def outcome(node: Node, asked: PodView) -> bool:
    before = node.shared
    try:
        node.place(asked)
    except PlacementError:
        assert node.shared == before
        return False
    return True


@example(free=[2, 5], init=[3], apps=[1, 4, 2], alignment="SingleNUMANode")
@given(
    free=st.lists(st.integers(0, 6), min_size=2, max_size=4),
    init=st.lists(st.integers(1, 6), min_size=1, max_size=3),
    apps=st.lists(st.integers(1, 6), min_size=1, max_size=3),
    alignment=st.sampled_from(["SingleNUMANode", "Restricted"]),
)
@settings(max_examples=200, deadline=None)
def test_a_pod_that_fits_without_them_fits_with_them(
    free: list[int], init: list[int], apps: list[int], alignment: str
) -> None:
    """If none of them needs more than the neediest container after it.

    One that does not fit without them may fit with them: containers take first what init containers
    had, which may leave others enough.
    """
    reserved = [
        cpu for node, left in enumerate(free) for cpu in range(node * 8 + left, node * 8 + 8)
    ]
    spec = policy(reserved={"cpus": ",".join(map(str, reserved))}, topology={"policy": alignment})
    resolved = resolve(machine(8 * len(free), 1, len(free)), spec, NO_QUIRKS)
    before = [str(min(count, max(apps))) for count in init]
    fits = outcome(Node(resolved), pod("a", *map(str, apps)))
    assert outcome(Node(resolved), starting("a", before, *map(str, apps))) or not fits
