"""What a pod and its containers ask for, in the slim form that planning needs."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial
from typing import Final, NamedTuple

from numapin_api.hardware.places import ClaimedDevice, Near

CPU: Final = "cpu"
MEMORY: Final = "memory"
HUGEPAGES_PREFIX: Final = "hugepages-"

Amounts = tuple[tuple[str, int], ...]
"""Memory and huge pages in bytes, or devices, by the name of the resource; sorted by name."""

Capacity = Mapping[str, Mapping[int, int]]
"""Memory and huge pages that can be bound: resource name to NUMA node to bytes."""


class ContainerKind(Enum):
    """When a container runs: to its end before the app containers, beside them, or as one."""

    INIT = "init"
    SIDECAR = "sidecar"
    APP = "app"


class ClaimRef(NamedTuple):
    """The name of a ResourceClaim, and of one of its requests; that is empty for all of them."""

    claim: str
    request: str = ""


@dataclass(frozen=True, slots=True)
class ContainerView:
    """One container's requests.

    `matched`: its requests for CPU and memory are set and equal its limits; `unequal`: what is not,
    for people. `ended`: it is an init container that has completed and will not run again.
    `claims`: its ResourceClaims. `cpu_claims`: the UIDs of those for CPUs; its CPUs and memory are
    not ours then. `claimed`: the devices of others. `granted`: the kubelet has granted it that.
    `devices`: how many of each extended resource of its limits, and of each driver of `claimed`.
    """

    name: str
    kind: ContainerKind
    cpu_millis: int = 0
    memory: Amounts = ()
    matched: bool = False
    ended: bool = False
    claims: tuple[ClaimRef, ...] = ()
    cpu_claims: tuple[str, ...] = ()
    granted: bool = False
    unequal: tuple[str, ...] = ()
    devices: Amounts = ()
    claimed: tuple[ClaimedDevice, ...] = ()

    @property
    def whole_cpus(self) -> int:
        """The CPU request if it is a whole number, else 0."""
        return 0 if self.cpu_millis % 1000 else self.cpu_millis // 1000


@dataclass(frozen=True, slots=True)
class PodLevel:
    """Requests of the pod as a whole (`spec.resources`).

    `granted`: the kubelet reports that it has granted them.
    """

    cpu_millis: int = 0
    memory: Amounts = ()
    granted: bool = False


class MirrorClaim(NamedTuple):
    """What a pod that says it mirrors a static pod gives as proof.

    `uid` is that of the static pod, `node_name` and `node_uid` those of the Node that owns the
    mirror pod; each is empty if it is missing or malformed.
    """

    uid: str
    node_name: str
    node_uid: str


@dataclass(frozen=True, slots=True)
class Origin:
    """Who created a pod, and how important it is; pods of one controller share one value.

    Attributes:
        kind: of the object that controls the pod, such as `ReplicaSet`; `Node` for a static pod;
            empty if none does.
        uid: of that object; empty if there is none.
        priority: `spec.priority`, which the API server sets from the priority class.
    """

    kind: str = ""
    uid: str = ""
    priority: int = 0


NO_ORIGIN: Final = Origin()


@dataclass(frozen=True, slots=True)
class PodView:
    """One pod as the planner sees it.

    Attributes:
        uid: the UID in the names of the pod's cgroups.
        containers: in the order in which they start.
        bound: when it was bound to its node (RFC 3339, so that texts sort by time).
        checked: a scheduler has bound it, or its kubelet has accepted it.
        terminal, deleting: it has ended; it is being deleted.
        selected: the policy's selectors choose it.
        origin: who created it, and how important it is.
        mirror: set if the pod says that it mirrors a static pod; not checked yet.
        problem: why nothing can be assigned to it, with the field; empty if something can.
        claims_unknown: one of its ResourceClaims has not been read yet.
        edited: its spec was changed after it was created, as by a resize.
        annotated: digest of the annotation of its CPUs, or empty; never a reason for a decision.
        told: the reason that the annotation of a refused pod names; empty if it has none. Likewise.
        chosen: what its annotation says of NUMA nodes; empty if it has none, and any text else.
        near: what its annotations say of places; None if it has none.
        counted: whether a NodeResourceTopology must account for it. Likewise.
        sandboxed: its containers may start now, or it has neither devices nor claims.
    """

    uid: str
    namespace: str
    name: str
    qos: str
    containers: tuple[ContainerView, ...]
    pod_level: PodLevel | None = None
    node: str = ""
    bound: str = ""
    checked: bool = True
    terminal: bool = False
    deleting: bool = False
    selected: bool = True
    labels: Mapping[str, str] = field(default_factory=dict)
    origin: Origin = NO_ORIGIN
    mirror: MirrorClaim | None = None
    problem: str = ""
    claims_unknown: bool = False
    edited: bool = False
    annotated: bytes = b""
    told: str = ""
    chosen: str = ""
    near: Near | None = None
    counted: bool = False
    sandboxed: bool = True

    @property
    def has_cpu_claims(self) -> bool:
        """Whether a DRA driver gives CPUs to one of its containers."""
        return any(container.cpu_claims for container in self.containers)

    @property
    def order(self) -> tuple[str, str, str]:
        """Sort key for the order in which pods are placed: time bound, then name."""
        return self.bound, self.namespace, self.name


def exclusive_cpus(pod: PodView, container: ContainerView) -> int:
    """How many exclusive CPUs an eligible pod's container gets; 0 means the shared pool.

    Source: Kubernetes v1.36, cpumanager, `guaranteedCPUs`.
    """
    if container.cpu_claims or (pod.pod_level is not None and not container.matched):
        return 0
    return container.whole_cpus


def lost_cpus(pod: PodView, name: str, has: int) -> int:
    """How many of a container's CPUs went offline and were not replaced, if it still has some.

    A container has fewer than it requests for no other reason, unless its pod was edited: then a
    resize may wait, and 0 is returned.
    """
    if not has or pod.edited or pod.pod_level is not None:
        return 0
    asked = (exclusive_cpus(pod, one) for one in pod.containers if one.name == name)
    return max(0, next(asked, 0) - has)


def pod_cpus(pod: PodView) -> int:
    """How many CPUs an eligible pod needs at once, init containers and sidecars counted.

    Source: Kubernetes v1.36, cpumanager, `podGuaranteedCPUs`.
    """
    if pod.pod_level is not None:
        return 0 if pod.pod_level.cpu_millis % 1000 else pod.pod_level.cpu_millis // 1000
    return at_once(pod, lambda container: exclusive_cpus(pod, container))


def least_pod_cpus(pod: PodView) -> int:
    """The fewest whole CPUs that a pod may request as a whole: as many as its containers do."""
    return max(1, -(-at_once(pod, lambda container: container.cpu_millis) // 1000))


class PodRequests(NamedTuple):
    """What a pod requests at once: thousandths of a CPU, and bytes of memory."""

    cpu_millis: int
    memory_bytes: int


def pod_requests(pod: PodView) -> PodRequests:
    """What scheduler and kubelet count of a pod, whether or not it is eligible for CPUs.

    Source: Kubernetes v1.36, component-helpers, `PodRequests`.
    """
    if pod.pod_level is not None:
        return PodRequests(pod.pod_level.cpu_millis, dict(pod.pod_level.memory).get(MEMORY, 0))
    cpu_millis = at_once(pod, lambda container: container.cpu_millis)
    memory_bytes = at_once(pod, lambda container: dict(container.memory).get(MEMORY, 0))
    return PodRequests(cpu_millis, memory_bytes)


def at_once(pod: PodView, amount: Callable[[ContainerView], int]) -> int:
    """The most that a pod's containers ask for at a time, init containers and sidecars counted."""
    peak = sidecars = apps = 0
    for container in pod.containers:
        asked = amount(container)
        match container.kind:
            case ContainerKind.SIDECAR:
                sidecars += asked
            case ContainerKind.INIT:
                peak = max(peak, sidecars + asked)
            case ContainerKind.APP:
                apps += asked
    return max(peak, sidecars + apps)


def container_memory(pod: PodView, container: ContainerView) -> Amounts:
    """The memory and huge pages that an eligible pod's container is bound with.

    Source: Kubernetes v1.36, memorymanager, `getContainerRequestedResources`.
    """
    if container.cpu_claims or (pod.pod_level is not None and not container.matched):
        return ()
    return container.memory


def pod_memory(pod: PodView) -> Amounts:
    """The memory and huge pages that an eligible pod needs at once.

    Resources that no app container asks for are left out, as the kubelet does.
    Source: Kubernetes v1.36, memorymanager, `getPodRequestedResources`.
    """
    if pod.pod_level is not None:
        return tuple((name, amount) for name, amount in pod.pod_level.memory if amount > 0)
    peak: dict[str, int] = {}
    sidecars: dict[str, int] = {}
    apps: dict[str, int] = {}
    for container in pod.containers:
        for name, amount in container_memory(pod, container):
            match container.kind:
                case ContainerKind.SIDECAR:
                    sidecars[name] = sidecars.get(name, 0) + amount
                case ContainerKind.INIT:
                    peak[name] = max(peak.get(name, 0), sidecars.get(name, 0) + amount)
                case ContainerKind.APP:
                    apps[name] = apps.get(name, 0) + amount
    return amounts(
        (name, max(apps[name] + sidecars.get(name, 0), peak.get(name, 0))) for name in apps
    )


def pod_devices(pod: PodView) -> Amounts:
    """The devices that a pod needs at once, init containers and sidecars counted.

    Source: Kubernetes v1.36, devicemanager, `getPodDeviceRequest`.
    """
    names = {name for container in pod.containers for name, _ in container.devices}
    return amounts((name, at_once(pod, partial(_count_of, name))) for name in names)


def _count_of(name: str, container: ContainerView) -> int:
    return dict(container.devices).get(name, 0)


def devices_alone(pod: PodView) -> PodView:
    """A pod that asks for nothing but the same devices."""
    containers = tuple(replace(one, cpu_millis=0, memory=()) for one in pod.containers)
    level = None if pod.pod_level is None else PodLevel()
    return replace(pod, containers=containers, pod_level=level)


def amounts(pairs: Iterable[tuple[str, int]]) -> Amounts:
    """Resource amounts, sorted by name."""
    return tuple(sorted(pairs))
