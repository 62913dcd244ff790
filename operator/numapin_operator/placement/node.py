"""Node: places pods on one machine one after the other, and lets them go."""

from collections.abc import Iterator

from numapin_api.cpuset import CpuSet
from numapin_operator.placement.demand import ContainerView, Kind, PodView, exclusive_cpus
from numapin_operator.placement.errors import (
    NotEnoughCpusError,
    PlacementError,
    SharedPoolEmptyError,
    SmtAlignmentError,
)
from numapin_operator.placement.holdings import Binding, CpuPool, Holding
from numapin_operator.placement.rules import Rules


class Node:
    """One machine under one policy, with what its pods hold.

    It is built from values, asked, and thrown away: nothing outlives a plan but the holdings.
    """

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.cpus = CpuPool(rules)
        self.holdings: dict[str, Holding] = {}

    def adopt(self, holding: Holding) -> None:
        """Take over what was decided before, as it is."""
        self.holdings[holding.uid] = holding
        self.cpus.claim(holding.cpus)

    def release(self, uid: str) -> None:
        """Return all that a pod holds; nothing happens where it holds nothing."""
        holding = self.holdings.pop(uid, None)
        if holding is not None:
            self.cpus.give_back(holding.cpus)

    def place(self, pod: PodView) -> Holding:
        """Give a pod's containers what they ask for, or nothing at all.

        Raises:
            PlacementError: it cannot be; the node is as before.
        """
        placing = _Placing(self, pod)
        try:
            holding = placing.run()
        except PlacementError:
            placing.undo()
            raise
        if holding.bindings:
            self.holdings[pod.uid] = holding
        return holding


class _Placing:
    """One pod being placed, container by container."""

    def __init__(self, node: Node, pod: PodView) -> None:
        self._node, self._pod = node, pod
        self._bindings: list[Binding] = []
        self._reusable = 0

    def run(self) -> Holding:
        for binding in self._place_containers():
            self._bindings.append(binding)
        return Holding(self._pod.uid, self._pod.namespace, self._pod.name, tuple(self._bindings))

    def undo(self) -> None:
        for binding in self._bindings:
            self._node.cpus.give_back(binding.cpus)

    def _place_containers(self) -> Iterator[Binding]:
        for container in self._pod.containers:
            count = 0 if container.ended else exclusive_cpus(self._pod, container)
            if count:
                cpus = self._take(container, count)
                if container.kind is Kind.INIT:
                    self._reusable |= cpus
                else:
                    self._reusable &= ~cpus
                yield Binding(container.name, cpus)

    def _take(self, container: ContainerView, count: int) -> int:
        rules, pool = self._node.rules, self._node.cpus
        self._check_cores(container, count)
        free = pool.free | self._reusable
        if count > free.bit_count():
            raise NotEnoughCpusError(count, free.bit_count(), f": {CpuSet.from_mask(free)}")
        cpus = rules.take(free, count)
        if pool.shared == cpus and not rules.as_kubelet:
            raise SharedPoolEmptyError(f"{count} CPUs would leave none for everybody else")
        pool.claim(cpus)
        return cpus

    def _check_cores(self, container: ContainerView, count: int) -> None:
        rules, pool = self._node.rules, self._node.cpus
        if not rules.whole_cores_only or not rules.layout.uniform:
            return
        threads, whole = rules.layout.threads, pool.free_whole_cores.bit_count()
        if count % threads:
            raise SmtAlignmentError(
                f"container {container.name} wanted {count} CPUs, "
                f"no multiple of the {threads} threads of a core"
            )
        if count > whole:
            raise SmtAlignmentError(
                f"container {container.name} wanted {count} CPUs, {whole} free in whole cores"
            )
