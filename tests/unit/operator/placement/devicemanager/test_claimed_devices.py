"""CPUs and memory near the devices of ResourceClaims, by the rules for devices of plug-ins."""

from dataclasses import replace

import pytest

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.hardware.places import ClaimedDevice
from numapin_api.topology import PciDevice, PciRoot, Topology
from numapin_operator.placement import (
    Node,
    NodeDevices,
    PlacementError,
    PodView,
    resolve,
    with_claimed,
)
from support.values.devices import NIC, container, pod_of
from support.values.placement import machine, policy

DRIVER = "gpu.example.com"
TWO: Topology = replace(
    machine(16, numa_nodes=2),
    pci=(PciDevice("0000:3b:00.0", "0302", 1), PciDevice("0000:5e:00.0", "0302", None)),
    pci_roots=(PciRoot("pci0000:3a", MemSet((1,))), PciRoot("pci0000:00", MemSet((0, 1)))),
)


def claiming(pod: PodView, **devices: str) -> PodView:
    """A pod whose containers have devices of claims with these places, such as `numa/1 numa/0`.

    Places of one device are separated by commas; `?` is a device of which nothing is known.
    """

    def device(name: str, places: str) -> ClaimedDevice:
        return ClaimedDevice(DRIVER, name, None if places == "?" else tuple(places.split(",")))

    def with_devices(name: str) -> tuple[ClaimedDevice, ...]:
        listed = devices.get(name, "").split()
        return tuple(device(f"n/{name}-{i}", one) for i, one in enumerate(listed))

    return replace(
        pod,
        containers=tuple(
            replace(
                one,
                claimed=with_devices(one.name),
                devices=(*one.devices, *((DRIVER, n) for n in [len(with_devices(one.name))] if n)),
            )
            for one in pod.containers
        ),
    )


def placed(alignment: str, pod: PodView, scope: str = "Container") -> dict[str, str]:
    """The NUMA nodes of the CPUs of each container, on a node whose kubelet is not asked."""
    resolved = resolve(TWO, policy(topology={"policy": alignment, "scope": scope}))
    status = with_claimed(None, [pod], TWO)
    assert status is not None
    node = Node(replace(resolved, devices=NodeDevices(status, resolved.hint_merger.everywhere)))
    found = {}
    for one in node.place(pod).containers:
        cpus = CpuSet.from_mask(one.cpus)
        there = (str(each) for each, own in TWO.numa_cpus.items() if own & cpus)
        found[one.name] = "".join(there)
    return found


ONE = pod_of("a", container("c0"))
BOTH = pod_of("a", container("c0"), container("c1"))
FIRST = pod_of("a", container("i0"), container("c0"))


@pytest.mark.parametrize("alignment", ["BestEffort", "Restricted", "SingleNUMANode"])
@pytest.mark.parametrize("scope", ["Container", "Pod"])
@pytest.mark.parametrize(
    ("devices", "expected"),
    [
        pytest.param("numa/1", "1", id="near"),
        pytest.param("numa/1 numa/1", "1", id="two near"),
        pytest.param("pci/0000:3b:00.0", "1", id="by its address"),
        pytest.param("pci/pci0000:3a", "1", id="by its root"),
        pytest.param("numa/7,pci/pci0000:3a", "1", id="a NUMA node that does not exist"),
        pytest.param("pci/0000:5e:00.0,numa/1", "1", id="an address without a NUMA node"),
        pytest.param("pci/pci0000:00", "0", id="a root near both"),
        pytest.param("pci/pci0000:00 numa/1", "1", id="near both, and near one"),
        pytest.param("numa/7", "0", id="nowhere"),
        pytest.param("numa/1 numa/7", "1", id="near, and nowhere"),
        pytest.param("numa/1 ?", "0", id="not all are known"),
        pytest.param("?", "0", id="unknown"),
    ],
)
def test_cpus_are_near_the_devices(alignment: str, scope: str, devices: str, expected: str) -> None:
    assert placed(alignment, claiming(ONE, c0=devices), scope) == {"c0": expected}


def test_each_container_is_near_its_own_devices() -> None:
    assert placed("SingleNUMANode", claiming(BOTH, c0="numa/1", c1="numa/0")) == {
        "c0": "1",
        "c1": "0",
    }


def test_devices_apart_need_as_many_numa_nodes_as_the_cpus() -> None:
    apart = claiming(ONE, c0="numa/0 numa/1")
    assert placed("BestEffort", apart) == {"c0": "0"}
    with pytest.raises(PlacementError, match=r"topology policy Restricted demands 1 CPU there"):
        placed("Restricted", apart)
    wide = claiming(pod_of("a", container("c0", "10")), c0="numa/0 numa/1")
    assert placed("Restricted", wide) == {"c0": "01"}, "the scheduler has chosen among all"
    refused = "^2 gpu.example.com are on NUMA nodes 0-1, and topology policy SingleNUMANode allows"
    with pytest.raises(PlacementError, match=refused):
        placed("SingleNUMANode", apart)


def test_in_pod_scope_all_devices_count_together() -> None:
    apart = claiming(BOTH, c0="numa/0", c1="numa/1")
    with pytest.raises(PlacementError, match=r"^2 gpu.example.com are on NUMA nodes 0-1"):
        placed("SingleNUMANode", apart, "Pod")
    together = claiming(FIRST, i0="numa/1", c0="numa/1")
    assert set(placed("SingleNUMANode", together, "Pod").values()) == {"1"}


def test_an_init_container_is_near_its_own_devices() -> None:
    assert placed("SingleNUMANode", claiming(FIRST, i0="numa/1"))["i0"] == "1"
    assert placed("SingleNUMANode", claiming(FIRST, i0="?"))["i0"] == "0"


def test_what_is_not_known_is_missed() -> None:
    status = with_claimed(None, [claiming(ONE, c0="numa/1 ?")], TWO)
    assert status is not None
    devices = NodeDevices(status, resolve(TWO, policy()).hint_merger.everywhere)
    assert devices.lacks(claiming(ONE, c0="numa/1 ?")) == (DRIVER,)
    assert devices.lacks(claiming(FIRST, i0="?")) == (DRIVER,)
    assert devices.lacks(claiming(ONE, c0="numa/1")) == ()


def test_a_node_without_claims_is_as_reported() -> None:
    assert with_claimed(None, [ONE, pod_of("b", container("c0", nic=1))], TWO) is None
    [row] = with_claimed(None, [claiming(ONE, c0="numa/1 numa/1")], TWO).containers  # type: ignore[union-attr]
    assert (row.resource, row.count, row.ids) == (DRIVER, 2, ("n/c0-0", "n/c0-1"))


def test_devices_of_plug_ins_and_of_claims_count_both() -> None:
    pod = claiming(pod_of("a", container("c0", nic=1)), c0="numa/1")
    assert dict(pod.containers[0].devices) == {NIC: 1, DRIVER: 1}
    assert placed("SingleNUMANode", pod) == {"c0": "1"}
