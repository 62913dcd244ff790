"""Static memory: bound by the kubelet's policy. Source: Kubernetes v1.36, memorymanager."""

from numapin_api.quantity import exact_bytes
from numapin_operator.placement.allocations import Block
from numapin_operator.placement.errors import NotEnoughMemoryError
from numapin_operator.placement.kubelet_quirks import KubeletQuirks
from numapin_operator.placement.masks import NO_NUMA_NODES, CpuMask, NumaMask, members
from numapin_operator.placement.memorymanager.pod_blocks import PodBlocks
from numapin_operator.placement.memorymanager.tables import MemoryTables
from numapin_operator.placement.requests import Amounts, ContainerKind, ContainerView
from numapin_operator.placement.topologymanager.hints import MemoryHints
from numapin_operator.placement.topologymanager.merge import MergedHint


class StaticBinder:
    """One pod's memory under policy Static.

    What ordinary init containers leave behind is used again by the containers after them.
    """

    def __init__(self, tables: MemoryTables, quirks: KubeletQuirks) -> None:
        self._tables, self._quirks = tables, quirks
        self._blocks = PodBlocks(tables)
        self._reusable: dict[NumaMask, dict[str, int]] = {}
        self._last: MemoryHints | None = None

    def hints(self, asked: Amounts) -> MemoryHints | None:
        """No preference if no NUMA nodes will do: the kubelet then refuses in `bind`."""
        self._last = found = self._tables.hints(asked, self._reusable)
        return found if found.best() else None

    def bind(
        self, container: ContainerView, asked: Amounts, hint: MergedHint, _cpus: CpuMask
    ) -> None:
        """Bind a container's memory to the NUMA nodes of the hint, or to more of them."""
        if not asked and not self._quirks.binds_empty_requests:
            return
        numa_nodes = self._choose(asked, hint)
        blocks = [Block(numa_nodes, resource, size) for resource, size in asked]
        reusable = self._reusable.get(numa_nodes, {})
        for block in blocks:
            fresh = max(0, block.size_bytes - reusable.get(block.resource, 0))
            self._tables.assign(Block(numa_nodes, block.resource, fresh))
        self._leave_or_use(container, blocks)
        self._blocks.reuse(blocks)
        self._blocks.add(container, blocks)

    def bind_pod(self, asked: Amounts, hint: MergedHint, _cpus: CpuMask) -> tuple[Block, ...]:
        """Bind the memory of a pod as a whole."""
        if not asked and not self._quirks.binds_empty_requests:
            return ()
        numa_nodes = self._choose(asked, hint)
        blocks = tuple(Block(numa_nodes, resource, size) for resource, size in asked)
        for block in blocks:
            self._tables.assign(block)
        self._blocks.add_pod(blocks)
        return blocks

    def blocks(self) -> dict[str, tuple[Block, ...]]:
        """What each container has been bound with."""
        return self._blocks.frozen()

    def undo(self) -> None:
        """Release whatever was bound."""
        self._blocks.undo()

    def _choose(self, asked: Amounts, hint: MergedHint) -> NumaMask:
        hints = self._last
        if hints is None or hints.asked != asked:
            hints = self._tables.hints(asked, self._reusable)
        self._last = None
        numa_nodes, promised = hint.numa_nodes, hint.preferred
        if numa_nodes is None:
            numa_nodes = hints.best() if asked else NO_NUMA_NODES
            self._check(hints, numa_nodes, promised=promised)
            promised = numa_nodes.bit_count() == hints.fewest
        if not self._tables.holds(numa_nodes, asked):
            numa_nodes = hints.best(required=numa_nodes)
            self._check(hints, numa_nodes, promised=promised)
        if self._tables.clashes(numa_nodes):
            raise NotEnoughMemoryError(
                f"{_nodes(numa_nodes)} serve other containers, so they cannot be bound together"
            )
        return numa_nodes

    def _check(self, hints: MemoryHints, numa_nodes: NumaMask, *, promised: bool) -> None:
        if not numa_nodes:
            raise NotEnoughMemoryError(
                f"wanted {_amounts(hints.asked)}, no NUMA nodes have so much"
                f"{_but(self._tables.in_groups_that_hold(hints.asked))}"
            )
        if promised and numa_nodes.bit_count() != hints.fewest:
            raise NotEnoughMemoryError(
                f"wanted {_amounts(hints.asked)}, which only {_nodes(numa_nodes)} have together; "
                f"{hints.fewest} would suffice on an empty machine"
            )

    def _leave_or_use(self, container: ContainerView, blocks: list[Block]) -> None:
        """Record what an init container leaves behind, or what another container takes of it."""
        for block in blocks:
            there = self._reusable.setdefault(block.numa_nodes, {})
            before = there.get(block.resource, 0)
            if container.kind is ContainerKind.INIT:
                there[block.resource] = max(before, block.size_bytes)
            else:
                there[block.resource] = max(0, before - block.size_bytes)


def _but(in_groups: NumaMask) -> str:
    if not in_groups:
        return ""
    verb = "serve" if in_groups.bit_count() > 1 else "serves"
    return f" but {_nodes(in_groups)}, which {verb} containers of several NUMA nodes"


def _nodes(numa_nodes: NumaMask) -> str:
    listed = ", ".join(map(str, members(numa_nodes)))
    return f"NUMA nodes {listed}" if numa_nodes.bit_count() > 1 else f"NUMA node {listed}"


def _amounts(asked: Amounts) -> str:
    return ", ".join(f"{exact_bytes(size)} of {resource}" for resource, size in asked)
