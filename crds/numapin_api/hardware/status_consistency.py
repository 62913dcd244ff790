"""What contradicts itself in the hardware that a status reports.

A schema cannot express these rules, and an enforcer that breaks one stalls its own node.
"""

from collections.abc import Iterable, Iterator
from itertools import pairwise

from numapin_api.cpuset import CpuSet, ListFormatError, MemSet
from numapin_api.hardware.limits import MAX_BYTES
from numapin_api.hardware.status import NumaNodeStatus, TopologyStatus
from numapin_api.topology import page_size_bytes, page_size_name

Group = tuple[int, CpuSet]


class TopologyError(ValueError):
    """A status reports hardware that cannot exist; the text names the field."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field, self.problem = field, problem


def check_topology(status: TopologyStatus) -> None:
    """Check what reading the hardware back relies on.

    Raises:
        TopologyError: naming the first field that is wrong.
    """
    for field, problem in _faults(status):
        raise TopologyError(field, problem)


def _faults(status: TopologyStatus) -> Iterator[tuple[str, str]]:
    numa_nodes = [(node.id, node.cpus) for node in status.numa_nodes]
    online = CpuSet.union(cpus for _, cpus in numa_nodes)
    if not online:
        yield "numaNodes", "no NUMA node has a CPU"
    yield from _ids("numaNodes", [id_ for id_, _ in numa_nodes])
    yield from _overlaps("numaNodes", (cpus for _, cpus in numa_nodes), online)
    for field, groups in (("sockets", status.sockets), ("uncoreCaches", status.uncore_caches)):
        yield from _ids(field, [group.id for group in groups])
        yield from _overlaps(field, (group.cpus for group in groups), online)
    yield from _overlaps("cores", status.cores, online)
    for field, cpus in (("offline", status.offline), ("withheld", status.withheld or CpuSet())):
        if both := cpus & online:
            yield field, f"CPUs {both} are in numaNodes too"
    for index, root in enumerate(status.pci_roots or ()):
        try:
            MemSet.parse(root.partition("=")[2])
        except ListFormatError as error:
            yield f"pciRoots[{index}]", str(error)
    for index, node in enumerate(status.numa_nodes):
        yield from _numa_faults(f"numaNodes[{index}]", node, len(numa_nodes))


def _ids(field: str, ids: list[int]) -> Iterator[tuple[str, str]]:
    for index, (id_, after) in enumerate(pairwise(ids)):
        if id_ >= after:
            yield f"{field}[{index + 1}].id", f"{after} does not ascend from {id_}"


def _overlaps(field: str, groups: Iterable[CpuSet], online: CpuSet) -> Iterator[tuple[str, str]]:
    seen = CpuSet()
    for index, cpus in enumerate(groups):
        if both := cpus & seen:
            yield f"{field}[{index}]", f"CPUs {both} are in an earlier entry too"
        if unknown := cpus - online:
            yield f"{field}[{index}]", f"CPUs {unknown} are in no NUMA node"
        seen |= cpus


def _numa_faults(field: str, node: NumaNodeStatus, count: int) -> Iterator[tuple[str, str]]:
    if len(node.distances) not in {0, count}:
        yield f"{field}.distances", f"{len(node.distances)} values for {count} NUMA nodes"
    for name, pages in node.hugepages.items():
        try:
            size = page_size_bytes(name)
        except ValueError:
            size = 0
        if size % 1024 or not size or page_size_name(size) != name:
            yield f"{field}.hugepages", f"{name!r:.40} is not a page size such as 2Mi"
        elif size * pages > MAX_BYTES:
            yield f"{field}.hugepages", f"{pages} pages of {name} are too many"
