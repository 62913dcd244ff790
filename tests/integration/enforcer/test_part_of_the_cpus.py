"""A node whose pods may use CPU 1 alone of this machine's CPUs, by the cgroup above kubepods."""

from functools import partial

import pytest

from numapin_lab.node.played_kubelet import Kubelet
from support.real.enforcer_node import Node, assigned, spec
from support.real.kernel_cgroups import CPUSET, VERSION, cpus_of, write_cpus
from support.real.waiting import eventually


@pytest.fixture
def above(kubelet: Kubelet) -> str:
    """The cgroup above kubepods, which has CPU 1; on v1 the kernel wants it narrowed last."""
    path = kubelet.root.strip("/")
    for one in (*kubelet.classes, kubelet.kubepods) if VERSION == 1 else ():
        write_cpus(one, "1")
    write_cpus(path, "1")
    return path


def withheld(node: Node) -> str:
    return str((node.status.get("topology") or {}).get("withheld", ""))


def is_part(node: Node, above: str) -> bool:
    planned = f"planned with CPU 1 of 0-1: cgroup {above} has no others"
    topology = node.status.get("topology") or {}
    return (
        [one["cpus"] for one in topology.get("numaNodes", ()) if one["cpus"]] == ["1"]
        and withheld(node) == "0"
        and topology["warnings"][0].startswith(planned)
        and planned in node.condition("Ready")[2]
    )


async def test_a_node_with_a_part_of_the_cpus_is_planned_with_it(
    node: Node, kubelet: Kubelet, above: str
) -> None:
    shared = await kubelet.run_pod("shared", "besteffort")
    cgroup = f"{shared.cgroup}/{await kubelet.run(shared, 'main')}"
    await node.start()
    node.assign(spec(shared="1", reserved="1"))
    await eventually(partial(is_part, node, above), "the part in the status")
    assert node.in_force()
    assert (cpus_of(cgroup), asked(above)) == ("1", "1")

    exclusive = await kubelet.run_pod("exclusive")
    own = f"{exclusive.cgroup}/{await kubelet.run(exclusive, 'main')}"
    write_cpus(above, "0-1")
    await eventually(lambda: not withheld(node), "the wider part in the status")
    assert "planned with" not in node.condition("Ready")[2]
    node.assign(spec(assigned(exclusive.uid, "main", "0"), shared="1", reserved="1"))
    await eventually(node.reports_exclusive, "the container to be reported exclusive")
    assert (cpus_of(own), cpus_of(cgroup)) == ("0", "1")
    if VERSION == 2:  # on v1 the kernel refuses it: the children have CPU 0
        write_cpus(above, "1")
        await eventually(partial(is_part, node, above), "the narrower part in the status")
        node.assign(spec(shared="1", reserved="1"))
        await eventually(node.in_force, "the assignment for the part to be in force")
        assert (cpus_of(own), asked(above), asked(kubelet.kubepods)) == ("1", "1", "")
    assert "a cgroup write was refused" not in node.log


def asked(cgroup: str) -> str:
    return (CPUSET / cgroup / "cpuset.cpus").read_text().strip()
