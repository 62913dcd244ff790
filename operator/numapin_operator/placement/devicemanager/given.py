"""The devices that containers have been given, as hints for CPUs and memory.

The kubelet chooses devices before a pod starts, and the scheduler those of ResourceClaims before it
binds the pod, so here they are facts. Hints come from the devices
of a container alone; how many NUMA nodes it should have is counted with all devices.
Source: Kubernetes v1.36, devicemanager, `GetTopologyHints` and `GetPodTopologyHints` of devices
that are already allocated.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Final, NamedTuple

from numapin_api.schema.plain_assignment import ContainerDevices, DeviceCount, DevicesStatus
from numapin_operator.placement.devicemanager.claimed import is_driver
from numapin_operator.placement.masks import NO_NUMA_NODES, NumaMask
from numapin_operator.placement.requests import (
    Amounts,
    ContainerKind,
    ContainerView,
    PodView,
    at_once,
)
from numapin_operator.placement.topologymanager.device_hints import (
    DeviceCounts,
    DeviceHints,
    DeviceRequest,
    device_hints,
    fewest_numa_nodes,
)
from numapin_operator.placement.topologymanager.hints import Impossible

MOST_GROUPS: Final = 8
"""Different groups of several NUMA nodes that devices of a resource may be near, such as sockets:
a search among more takes long, and they have no say."""


@dataclass(frozen=True)
class NodeDevices:
    """The devices of a node, and who has them, as its kubelet says.

    It is read as far as it is asked for. NUMA nodes that the machine does not have are left out.

    Attributes:
        status: what the node reports.
        everywhere: the NUMA nodes of the machine.
        awaited: UIDs of the pods that are not placed before the kubelet has said what they have.
    """

    status: DevicesStatus
    everywhere: NumaMask
    awaited: frozenset[str] = frozenset()

    @cached_property
    def there(self) -> Mapping[str, DeviceCounts]:
        """All devices of each resource of which at least one has NUMA nodes."""
        found: dict[str, Counter[NumaMask]] = {}
        for row in self.status.resources:
            found.setdefault(row.resource, Counter())[self._near(row)] += row.count
        return {name: each for name, each in found.items() if any(each) and not are_too_many(each)}

    @cached_property
    def _rows(self) -> Mapping[str, list[ContainerDevices]]:
        """The rows of each pod."""
        found: dict[str, list[ContainerDevices]] = {}
        for row in self.status.containers:
            found.setdefault(row.pod_uid, []).append(row)
        return found

    def _near(self, row: DeviceCount | ContainerDevices) -> NumaMask:
        return NumaMask(row.numa_nodes.mask & self.everywhere)

    def lacks(self, pod: PodView) -> tuple[str, ...]:
        """Of which resources it is not known which devices a pod has, or not of all of them.

        The kubelet does not list ordinary init containers. All devices of claims are known, or
        the driver has not published them.
        Source: Kubernetes v1.36, kubelet/apis/podresources, `v1PodResourcesServer.List`.
        """
        found = {
            resource
            for one in pod.containers
            for resource, count in one.devices
            if is_driver(resource)
            or (one.kind is not ContainerKind.INIT and resource in self.there)
            if self.of(pod.uid, one.name, resource).total() != count
        }
        return tuple(sorted(found))

    def of(self, uid: str, container: str, resource: str) -> Counter[NumaMask]:
        """The devices of one container."""
        found = Counter[NumaMask]()
        for row in self._rows.get(uid, ()):
            if (row.container, row.resource) == (container, resource):
                found[self._near(row)] += row.count
        return found

    def near(self, uid: str, containers: Collection[str]) -> NumaMask:
        """The NUMA nodes of all devices of some containers of a pod."""
        joined = NO_NUMA_NODES
        for row in self._rows.get(uid, ()):
            if row.container in containers:
                joined |= self._near(row)
        return joined


def are_too_many(counts: DeviceCounts) -> bool:
    """Whether devices are near too many different groups of NUMA nodes; see `MOST_GROUPS`."""
    return sum(near.bit_count() > 1 for near in counts) > MOST_GROUPS


def with_named(status: DevicesStatus, pods: Iterable[PodView]) -> DevicesStatus:
    """The report, with the devices of pods that its node cannot name yet, by their UIDs.

    A pod that is one of `unnamed_pods` has what the kubelet lists under its name: the kubelet has
    forgotten each older pod of that name before it made a cgroup.
    """
    unnamed = frozenset(status.unnamed_pods)
    uids: dict[tuple[str, str], list[str]] = {}
    for pod in pods if unnamed else ():
        if pod.uid in unnamed:
            uids.setdefault((pod.namespace, pod.name), []).append(pod.uid)
    named = tuple(
        ContainerDevices(found[0], row.container, row.resource, row.count, row.numa_nodes)
        for row in status.unnamed
        if len(found := uids.get((row.namespace, row.pod), [])) == 1
    )
    return replace(status, containers=(*status.containers, *named)) if named else status


class AwaitsDevices(NamedTuple):
    """A pod that is not placed before it is known which devices of these resources it has."""

    pod: PodView
    resources: tuple[str, ...]


def hold_awaiting(
    pods: Sequence[PodView], devices: NodeDevices | None
) -> tuple[Sequence[PodView], tuple[AwaitsDevices, ...]]:
    """The pods to plan for, and those that await their devices."""
    if devices is None or not devices.awaited:
        return pods, ()
    awaiting = (pod for pod in pods if pod.uid in devices.awaited)
    held = {pod.uid: AwaitsDevices(pod, lacks) for pod in awaiting if (lacks := devices.lacks(pod))}
    return [pod for pod in pods if pod.uid not in held], tuple(held.values())


class GivenDevices:
    """The devices of one pod as hints.

    Left out are resources of which it is not known which devices it has, and devices that are near
    no NUMA node. Of what init containers alone have, as many NUMA nodes as such a request needs are
    preferred, wherever they are. Devices of claims are on no more NUMA nodes than needed: who may
    have others is not known here.
    """

    def __init__(self, node: NodeDevices, pod: PodView) -> None:
        self._node, self._pod = node, pod
        self._lacks = node.lacks(pod)

    def hints(self, asked: Amounts, container: str | None) -> tuple[DeviceHints | Impossible, ...]:
        """What the devices of a container, or of the pod, demand of CPUs and memory."""
        return tuple(self._hints(asked, container)) if asked else ()

    def _hints(self, asked: Amounts, container: str | None) -> Iterator[DeviceHints | Impossible]:
        for resource, count in asked:
            if resource not in self._lacks:
                found = self._hint(resource, count, container)
                if found is not None:
                    yield found

    def _hint(
        self, resource: str, count: int, container: str | None
    ) -> DeviceHints | Impossible | None:
        given = self._of_pod(resource) if container is None else self._of(resource, container)
        claimed = is_driver(resource)
        there = Counter(given) if claimed else self._node.there.get(resource)
        if there is None:
            return None
        wanted = (given.total() if claimed else count) - given.pop(NO_NUMA_NODES, 0)
        known = min(wanted, given.total())
        every = Counter(there) | given
        if known <= 0 or are_too_many(every):
            return None
        request = DeviceRequest(resource, known)
        found = device_hints(request, every, given, self._node.everywhere)
        if isinstance(found, DeviceHints) and known < wanted:
            whole = DeviceRequest(resource, wanted)
            fewest = fewest_numa_nodes(whole, every, found.numa_nodes)
            found = found._replace(fewest=fewest)
        return found

    def _of(self, resource: str, container: str) -> Counter[NumaMask]:
        """The devices of a container.

        Those of an ordinary init container are given to the containers after it first.
        """
        uid, containers = self._pod.uid, self._pod.containers
        found = self._node.of(uid, container, resource)
        index = next(i for i, one in enumerate(containers) if one.name == container)
        if not found and containers[index].kind is ContainerKind.INIT:
            for one in containers[index + 1 :]:
                found += self._node.of(uid, one.name, resource)
        return found

    def _of_pod(self, resource: str) -> Counter[NumaMask]:
        """The devices of the pod; those that init containers leave to the next ones count once.

        Devices of claims are left to nobody: each container is near its own.
        """
        uid, containers = self._pod.uid, self._pod.containers
        if is_driver(resource):
            return sum((self._node.of(uid, one.name, resource) for one in containers), Counter())
        of = {one.name: self._node.of(uid, one.name, resource) for one in containers}
        found = Counter[NumaMask]()
        for numa_nodes in {each for counts in of.values() for each in counts}:
            near = {name: counts[numa_nodes] for name, counts in of.items()}
            found[numa_nodes] = at_once(self._pod, partial(_count_of, near))
        return found


def _count_of(counts: Mapping[str, int], container: ContainerView) -> int:
    return counts[container.name]
