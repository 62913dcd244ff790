"""Near what a pod must be or would rather be, by its annotations: `placement.podRequests`.

A pod says places. They stand for the NUMA nodes that these are on, all taken together. Like a hint
provider of the kubelet's Topology Manager, the pod offers each set of these NUMA nodes, and all as
preferred: a merge with it finds what a merge without it finds if nothing else is free.
"""

from itertools import accumulate
from operator import or_
from typing import Final, NamedTuple

from numapin_api.cpupolicy import CpuPolicySpec
from numapin_api.cpuset import MemSet
from numapin_api.hardware.places import PlaceError, numa_nodes_at, parse_places
from numapin_api.names import PREFER_NEAR_ANNOTATION, REQUIRE_NEAR_ANNOTATION
from numapin_api.topology import Topology
from numapin_operator.placement.errors import InvalidPodError, TopologyAffinityError
from numapin_operator.placement.masks import NO_NUMA_NODES, NumaMask
from numapin_operator.placement.requests import PodView
from numapin_operator.placement.topologymanager.distances import distances_of

ANYWHERE: Final = NumaMask(-1)
"""All NUMA nodes that there could be."""

_MOST_RINGS: Final = 4
"""How often a pod is tried near what it prefers and farther away, before it is tried anywhere."""


class Wish(NamedTuple):
    """What an annotation means on one machine.

    Attributes:
        annotation: its name.
        text: its text.
        numa_nodes: what it stands for; none if there is a problem.
        problem: why it stands for nothing; empty if there is no problem.
        malformed: whether that is so on every machine.
    """

    annotation: str
    text: str
    numa_nodes: NumaMask
    problem: str = ""
    malformed: bool = False

    @property
    def meaning(self) -> str:
        """The places and their NUMA nodes, for people."""
        mems = MemSet.from_mask(self.numa_nodes)
        return f"{self.text} (NUMA node{'s' if len(mems) > 1 else ''} {mems})"


def required(policy: CpuPolicySpec, topology: Topology, pod: PodView) -> Wish | None:
    """Near what a pod must be; None if it says nothing, or the policy does not allow it."""
    if pod.near is None or not pod.near.required or not policy.placement.pod_requests:
        return None
    return _wish(REQUIRE_NEAR_ANNOTATION, pod.near.required, topology)


def preferred(policy: CpuPolicySpec, topology: Topology, pod: PodView) -> Wish | None:
    """Near what a pod would rather be; None as above."""
    if pod.near is None or not pod.near.preferred or not policy.placement.pod_requests:
        return None
    return _wish(PREFER_NEAR_ANNOTATION, pod.near.preferred, topology)


def _wish(annotation: str, text: str, topology: Topology) -> Wish:
    try:
        places = parse_places(text)
    except PlaceError as problem:
        return Wish(annotation, text, NO_NUMA_NODES, str(problem), malformed=True)
    listed = ", ".join(places)
    try:
        found = numa_nodes_at(topology, places)
    except PlaceError as problem:
        return Wish(annotation, listed, NO_NUMA_NODES, str(problem))
    if not any(topology.numa_cpus[one] for one in found):
        nodes, have = ("nodes", "have") if len(found) > 1 else ("node", "has")
        bare = f"NUMA {nodes} {found} of {listed} {have} no CPUs"
        return Wish(annotation, listed, NO_NUMA_NODES, bare)
    return Wish(annotation, listed, NumaMask(found.mask))


def stays_on(policy: CpuPolicySpec, topology: Topology, pod: PodView) -> NumaMask:
    """The NUMA nodes that a pod must not be moved off if it is there; all if it does not matter."""
    found = ANYWHERE
    for wish in (required(policy, topology, pod), preferred(policy, topology, pod)):
        if wish is not None and wish.numa_nodes & found:
            found = NumaMask(found & wish.numa_nodes)
    return found


def limits(policy: CpuPolicySpec, topology: Topology, pod: PodView) -> tuple[NumaMask, ...]:
    """The NUMA nodes among which a pod is to be placed: if they have no room, among the next ones.

    These are those that it prefers, then with them the nearest others, at last all that it may
    have. Each contains the one before it.
    """
    must, rather = required(policy, topology, pod), preferred(policy, topology, pod)
    last = ANYWHERE if must is None else must.numa_nodes
    if rather is None or not rather.numa_nodes & last:
        return (last,)
    rings = [NumaMask(one & last) for one in _rings(topology, rather.numa_nodes)[:_MOST_RINGS]]
    return tuple(dict.fromkeys((*rings, last)))


def _rings(topology: Topology, inner: NumaMask) -> list[NumaMask]:
    """NUMA nodes, then these and the nearest others, and so on, without the one that has all."""
    distances = distances_of(topology)
    there = [one.id for one in topology.numa_nodes]
    within = [one for one in there if inner >> one & 1]
    far = {
        one: 0 if one in within else min(distances[near][one] for near in within) for one in there
    }
    by_distance = dict.fromkeys(sorted(set(far.values())), NO_NUMA_NODES)
    for one, distance in far.items():
        by_distance[distance] |= NumaMask(1 << one)
    return list(accumulate(by_distance.values(), or_))[:-1]


def check_required(policy: CpuPolicySpec, topology: Topology, pod: PodView) -> None:
    """Check that there is what a pod requires.

    Raises:
        InvalidPodError: the annotation cannot be read.
        TopologyAffinityError: this machine does not have what it says.
    """
    wish = required(policy, topology, pod)
    if wish is not None and wish.problem:
        said = f"annotation {wish.annotation}: {wish.problem}"
        raise InvalidPodError(said) if wish.malformed else TopologyAffinityError(said)


def why_near(policy: CpuPolicySpec, topology: Topology, pod: PodView) -> tuple[str, ...]:
    """What a pod's annotations mean on a machine, or why they mean nothing, for people."""
    if pod.near is None:
        return ()
    if not policy.placement.pod_requests:
        both = (REQUIRE_NEAR_ANNOTATION, PREFER_NEAR_ANNOTATION)
        named = [name for name, text in zip(both, pod.near, strict=True) if text]
        return tuple(
            f"its annotation {name} has no effect: placement.podRequests is false" for name in named
        )
    must, rather = required(policy, topology, pod), preferred(policy, topology, pod)
    said = (
        _said(must, "it must be near", "it is refused"),
        _said(rather, "it would rather be near", "the annotation has no effect"),
    )
    return tuple(filter(None, said))


def _said(wish: Wish | None, means: str, otherwise: str) -> str:
    if wish is None:
        return ""
    if wish.problem:
        return f"its annotation {wish.annotation}: {wish.problem}; {otherwise}"
    return f"{means} {wish.meaning}, by its annotation {wish.annotation}"
