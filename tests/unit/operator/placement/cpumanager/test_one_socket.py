"""Distributed CPUs with alignBySocket: within one socket where one has room."""

from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numapin_api.cpuset import CpuSet
from numapin_api.topology import Cpu, NumaNode, Topology
from numapin_operator.placement import KUBELET, NO_QUIRKS, KubeletQuirks, Node, resolve
from support.values.placement import GIB, pod, policy


class Machine(NamedTuple):
    """Free CPUs of each NUMA node, the same number of nodes in each socket."""

    free: tuple[int, ...]
    sockets: int
    threads: int = 1
    per_node: int = 16

    def place(self, count: int, quirks: KubeletQuirks = NO_QUIRKS) -> list[int]:
        """How many CPUs each NUMA node gives to a container; all others are reserved."""
        nodes = len(self.free)
        topology = Topology(
            cpus=tuple(
                Cpu(
                    cpu,
                    cpu // self.threads * self.threads,
                    cpu // self.per_node * self.sockets // nodes,
                    -1,
                    cpu // self.per_node,
                )
                for cpu in range(nodes * self.per_node)
            ),
            numa_nodes=tuple(NumaNode(node, 64 * GIB) for node in range(nodes)),
        )
        kept = [
            str(cpu)
            for node, free in enumerate(self.free)
            for cpu in range(node * self.per_node + free, (node + 1) * self.per_node)
        ]
        options = {
            "distributeCPUsAcrossNUMA": True,
            "alignBySocket": True,
            "fullPCPUsOnly": self.threads > 1,
        }
        spec = policy(reserved={"cpus": ",".join(kept)}, options=options)
        (container,) = Node(resolve(topology, spec, quirks)).place(pod("a", str(count))).containers
        given = CpuSet.from_mask(container.cpus)
        return [len(given & cpus) for cpus in topology.numa_cpus.values()]


@pytest.mark.parametrize(
    ("machine", "count", "shares", "of_kubelet"),
    [
        pytest.param(Machine((16, 14, 16, 14), 2), 28, [14, 14, 0, 0], [14, 0, 14, 0], id="even"),
        pytest.param(
            Machine((14, 12, 16, 10), 2), 24, [0, 0, 14, 10], [12, 0, 12, 0], id="by-the-rest"
        ),
        pytest.param(Machine((8, 8, 16, 12), 2), 28, [0, 0, 16, 12], None, id="one-has-room"),
        pytest.param(
            Machine((12, 12, 12, 16, 10, 2), 2), 30, [10, 10, 10, 0, 0, 0], None, id="three-of-one"
        ),
        pytest.param(Machine((12, 12, 15, 15), 2), 30, [0, 0, 15, 15], [0, 0, 15, 15], id="alike"),
        pytest.param(
            Machine((16, 14, 16, 14), 2, threads=2), 28, [14, 14, 0, 0], [14, 0, 14, 0], id="cores"
        ),
    ],
)
def test_one_socket_where_one_has_room(
    machine: Machine, count: int, shares: list[int], of_kubelet: list[int] | None
) -> None:
    assert machine.place(count) == shares
    if of_kubelet is not None:
        assert machine.place(count, KUBELET) == of_kubelet


@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_never_two_sockets_where_one_suffices(data: st.DataObject) -> None:
    sockets, per_socket = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 4))
    threads = data.draw(st.sampled_from([1, 2]))
    nodes = sockets * per_socket
    cores = st.integers(0, 8 // threads)
    free = [data.draw(cores) * threads for _ in range(nodes)]
    free[-1] = min(free[-1], 8 - threads)
    most = max(sum(free[at : at + per_socket]) for at in range(0, nodes, per_socket))
    if most < threads:
        return
    count = data.draw(st.integers(1, most // threads)) * threads
    shares = Machine(tuple(free), sockets, threads, 8).place(count)
    assert sum(shares) == count
    used = {node // per_socket for node, share in enumerate(shares) if share}
    assert len(used) == 1
