"""Reads the ResourceClaims of pods: which are for CPUs of a DRA driver, which for other devices."""

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from numapin_api.cpupolicy import CpuPolicySpec
from numapin_client.errors import ClientError, NotFoundError
from numapin_client.resources import Key
from numapin_daemon.clock import Clock, SystemClock
from numapin_daemon.flowcontrol.rate_limit import TokenBucket
from numapin_daemon.logs.lines import POD_UID
from numapin_daemon.logs.log_limit import LogLimit
from numapin_operator.cluster import Cluster
from numapin_operator.nodes.decide import NodePicture
from numapin_operator.nodes.lookups.places import DevicePlaces
from numapin_operator.nodes.picture import with_claimed_devices
from numapin_operator.observe.pods.claims import ClaimView, with_claims
from numapin_operator.observe.resource_slices import DeviceId
from numapin_operator.placement import PodView, pod_cpus

AGAIN_SECONDS: Final = 5.0
LONGEST_AGAIN_SECONDS: Final = 300.0
"""When a pod's claims are read again after one could not be read, or was not allocated: the first
time, doubled each time after that, and at most."""

MOST_READS: Final = 16
"""Claims that are read for one plan; the pods of others wait for the next one."""

UNKNOWN_AT_ONCE: Final = 20
UNKNOWN_PER_SECOND: Final = 1.0
"""Reads in vain for the pods of one namespace, at once and in the long run: a small share of
`--kube-api-qps`. Claims that are allocated, as for each pod that a scheduler has bound, do not
count."""

_REMEMBERED_NAMESPACES: Final = 1000

_NO_CPUS: Final = ClaimView("", frozenset())

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Vain:
    """How often a pod's claims were read in vain, and when they are read again."""

    count: int
    again_at: float


@dataclass(slots=True)
class _Share:
    """What a namespace may have read in vain, and until when it has used that up."""

    left: TokenBucket = field(
        default_factory=lambda: TokenBucket(UNKNOWN_AT_ONCE, UNKNOWN_PER_SECOND)
    )
    until: float = 0.0


@dataclass(slots=True)
class _OfNode:
    """The claims of a node's pods, by the pod's UID; while the pod lives, they are the same."""

    known: dict[str, dict[str, ClaimView]] = field(default_factory=dict)
    vain: dict[str, _Vain] = field(default_factory=dict)
    again_at: float | None = None


class Claims:
    """The claims of the pods on each node.

    A claim is allocated before a scheduler binds its pod, and does not change while the pod uses
    it. So each is read once, if the policy would give the pod CPUs. A pod is not placed while one
    of its claims is unknown, a claim that does not exist among them; other pods do not wait for it.
    An API server that does not serve the kind of claims has no driver that gives CPUs away: its
    pods do not wait.

    The driver may serve other pods too. Their claims are read while the node reports a claim that
    belongs to no known pod.
    """

    def __init__(self, cluster: Cluster, clock: Clock | None = None) -> None:
        """Know nothing yet."""
        self._cluster, self._clock = cluster, clock or SystemClock()
        self._nodes: dict[str, _OfNode] = {}
        self._shares: dict[str, _Share] = {}
        self._lines = LogLimit(clock=self._clock)
        self._places = DevicePlaces(cluster, self._clock)

    async def read(self, picture: NodePicture) -> bool:
        """Read the claims of a node's pods that must be known; whether any was asked for."""
        claiming = {pod.uid: pod for pod in picture.pods if not pod.terminal and _claims(pod)}
        if not claiming or not picture.ranked:
            self._nodes.pop(picture.name, None)
            return await self._places.read(picture.name, {})
        of_node = self._nodes.setdefault(picture.name, _OfNode())
        of_node.known = {uid: one for uid, one in of_node.known.items() if uid in claiming}
        of_node.vain = {uid: one for uid, one in of_node.vain.items() if uid in claiming}
        left = MOST_READS
        for pod in _concerned(picture, of_node, claiming.values()):
            left -= await self._read_pod(of_node, pod, left)
        times = [self._clock.monotonic()] if left <= 0 else []
        times += [one.again_at for one in of_node.vain.values()]
        of_node.again_at = min(times, default=None)
        wanted = _wanted_devices(picture, of_node.known, claiming.values())
        return await self._places.read(picture.name, wanted) or left < MOST_READS

    def mark(self, picture: NodePicture) -> NodePicture:
        """The picture with the claims of its pods, and when something must be read again."""
        name, of_node = picture.name, self._nodes.get(picture.name)
        if of_node is None:
            of_node = _OfNode()
        places, known = self._places.of(name), of_node.known
        pods = tuple(with_claims(pod, known.get(pod.uid, {}), places) for pod in picture.pods)
        times = (of_node.again_at, self._places.again_at(name))
        return replace(
            picture,
            pods=pods,
            assignment=with_claimed_devices(picture.assignment, pods),
            claims_due=min((one for one in times if one is not None), default=None),
        )

    async def _read_pod(self, of_node: _OfNode, pod: PodView, most: int) -> int:
        """Read a pod's claims up to the first that is unknown; return how many were asked for."""
        known = of_node.known.setdefault(pod.uid, {})
        asked = 0
        for claim in [one for one in _claims(pod) if one not in known]:
            if asked >= most or self._is_waiting(of_node, pod):
                return asked
            if (until := self._used_up_until(pod.namespace)) is not None:
                self._postpone(of_node, pod, until)
                return asked
            asked += 1
            view = await self._read(Key(claim, pod.namespace), pod)
            if view is None:
                self._note_vain(of_node, pod)
                return asked
            known[claim] = view
        of_node.vain.pop(pod.uid, None)
        return asked

    def _is_waiting(self, of_node: _OfNode, pod: PodView) -> bool:
        """Whether a pod's back-off is not over yet."""
        vain = of_node.vain.get(pod.uid)
        return vain is not None and vain.again_at > self._clock.monotonic()

    def _used_up_until(self, namespace: str) -> float | None:
        """Until when a namespace has used up its share; None if it has not."""
        share = self._shares.get(namespace)
        return share.until if share and share.until > self._clock.monotonic() else None

    def _note_vain(self, of_node: _OfNode, pod: PodView) -> None:
        """Take in that a pod's claim is unknown."""
        now = self._clock.monotonic()
        share = self._shares.pop(pod.namespace, None) or _Share()
        share.until = now + share.left.spend(1, now)
        self._shares[pod.namespace] = share
        if len(self._shares) > _REMEMBERED_NAMESPACES:
            del self._shares[next(iter(self._shares))]
        self._postpone(of_node, pod, now)

    def _postpone(self, of_node: _OfNode, pod: PodView, not_before: float) -> None:
        """Have a pod's claims read later, and later each time."""
        vain = of_node.vain.get(pod.uid)
        count = vain.count if vain else 0
        delay_seconds = min(AGAIN_SECONDS * 2.0 ** min(count, 30), LONGEST_AGAIN_SECONDS)
        at = max(not_before, self._clock.monotonic() + delay_seconds)
        of_node.vain[pod.uid] = _Vain(count + 1, at)

    async def _read(self, key: Key, pod: PodView) -> ClaimView | None:
        """One claim; None if it is not known yet, which is logged once for each pod."""
        try:
            view = await self._cluster.read_claim(key)
        except ClientError as error:
            if isinstance(error, NotFoundError) and not error.names_object:
                return _NO_CPUS
            why = str(error)
        else:
            if view is not None:
                return view
            why = "nothing is allocated for it"
        if (more := self._lines.admit(pod.uid)) is not None:
            about = {POD_UID: pod.uid, "pod": f"{pod.namespace}/{pod.name}", "claim": str(key)}
            _log.warning(
                "cannot read a claim, its pod is not placed yet",
                extra={**about, "error": why, **more},
            )
        return None


def _claims(pod: PodView) -> tuple[str, ...]:
    """The names of a pod's claims."""
    return tuple(dict.fromkeys(ref.claim for one in pod.containers for ref in one.claims))


def _concerned(
    picture: NodePicture, of_node: _OfNode, claiming: Iterable[PodView]
) -> Iterator[PodView]:
    """The pods whose claims must be known, those that the policy would give CPUs first."""
    spec, others = picture.ranked[0].spec, list[PodView]()
    for pod in claiming:
        if _is_served(spec, pod):
            yield pod
        else:
            others.append(pod)
    for pod in others:
        if _unexplained(picture, of_node.known.values()):
            yield pod


def _is_served(spec: CpuPolicySpec, pod: PodView) -> bool:
    """Whether a policy would give a pod CPUs or memory, claims aside."""
    asks = bool(pod_cpus(pod)) or spec.memory.policy != "None"
    eligible = pod.selected and pod.qos in spec.pods.qos_classes
    return spec.mode != "None" and eligible and asks and not pod.deleting


def _unexplained(picture: NodePicture, known: Iterable[Mapping[str, ClaimView]]) -> bool:
    """Whether the node reports a claim that none of the known pods has."""
    reported = picture.assignment.status.claims if picture.assignment is not None else ()
    if not reported:
        return False
    uids = {view.uid for views in known for view in views.values()}
    return any(one.claim_uid not in uids for one in reported)


def _wanted_devices(
    picture: NodePicture,
    known: Mapping[str, Mapping[str, ClaimView]],
    claiming: Iterable[PodView],
) -> Mapping[DeviceId, bool]:
    """The devices that must be known, and whether containers that have them may start.

    A pod with a place needs them only if it may be moved.
    """
    spec, assignment = picture.ranked[0].spec, picture.assignment
    if spec.topology.policy == "None" or assignment is None or assignment.topology is None:
        return {}
    placed = {one.pod_uid for one in assignment.spec.containers if spec.mode != "Dynamic"}
    wanted: dict[DeviceId, bool] = {}
    for pod in claiming:
        if pod.uid not in placed and _is_served(spec, pod):
            for view in known.get(pod.uid, {}).values():
                for _, device in view.devices:
                    wanted[device] = wanted.get(device, False) or pod.sandboxed
    return wanted
