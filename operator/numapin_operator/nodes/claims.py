"""Reads the ResourceClaims of pods, to know which containers the DRA driver of CPUs serves."""

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from numapin_client.errors import ClientError, NotFoundError
from numapin_client.resources import Key
from numapin_operator.api_server import Cluster
from numapin_operator.observe.pods.claims import ClaimView, with_cpu_claims
from numapin_operator.placement import PodView

AGAIN_SECONDS: Final = 5.0
"""How long after a claim could not be read, or was not allocated, it is read again."""

MOST_READS: Final = 16
"""Claims that are read for one plan; the pods of others wait for the next one."""

_NO_CPUS: Final = ClaimView("", frozenset())

_log = logging.getLogger(__name__)

_Claim = tuple[str, str]
"""A pod's UID and the name of a claim: while the pod lives, the claim is the same."""


class Claims:
    """The claims of the pods on each node.

    A claim is allocated before a scheduler binds its pod, and does not change while the pod uses
    it. So each is read once. A pod is not placed while one of its claims is unknown, a claim that
    does not exist among them; other pods do not wait for it. An API server that does not serve the
    kind of claims has no driver that gives CPUs away: its pods do not wait.
    """

    def __init__(self, cluster: Cluster, wake: Callable[[str], object]) -> None:
        """Args: `wake` is called with a node whose claims must be read again."""
        self._cluster, self._wake = cluster, wake
        self._known: dict[str, dict[_Claim, ClaimView]] = {}
        self._tried: dict[str, dict[_Claim, float]] = {}
        """When the unknown claims of each node can be read again, by the event loop's time."""
        self._timers: dict[str, asyncio.TimerHandle] = {}

    async def read(self, node: str, pods: Sequence[PodView]) -> None:
        """Read the claims of a node's pods that are not known yet."""
        used = dict(_used(pods))
        if not used:
            self._forget(node)
            return
        known = {one: view for one, view in self._known.get(node, {}).items() if one in used}
        tried = {one: at for one, at in self._tried.get(node, {}).items() if one in used}
        self._known[node], self._tried[node] = known, tried
        loop, left = asyncio.get_running_loop(), MOST_READS
        for one, key in used.items():
            if one in known or tried.get(one, 0.0) > loop.time():
                continue
            if not left:
                break
            left -= 1
            view = await self._read(key, is_first=one not in tried)
            if view is None:
                tried[one] = loop.time() + AGAIN_SECONDS
            else:
                known[one] = view
                tried.pop(one, None)
        if used.keys() - known.keys():
            self._wake_later(node, AGAIN_SECONDS if left else 0.0)

    def mark(self, node: str, pods: Sequence[PodView]) -> tuple[PodView, ...]:
        """The pods of a node with the claims for CPUs of their containers."""
        known = self._known.get(node)
        if not known and not any(True for _ in _used(pods)):
            return tuple(pods)
        return tuple(_marked(pod, known or {}) for pod in pods)

    async def _read(self, key: Key, *, is_first: bool) -> ClaimView | None:
        """One claim; None if it is not known yet, which is logged the first time."""
        try:
            return await self._cluster.read_claim(key)
        except ClientError as error:
            if isinstance(error, NotFoundError) and not error.names_object:
                return _NO_CPUS
            if is_first:
                _log.warning(
                    "cannot read a claim, its pod is not placed yet",
                    extra={"claim": str(key), "error": str(error)},
                )
            return None

    def _wake_later(self, node: str, seconds: float) -> None:
        if (timer := self._timers.pop(node, None)) is not None:
            timer.cancel()
        self._timers[node] = asyncio.get_running_loop().call_later(seconds, self._wake, node)

    def _forget(self, node: str) -> None:
        self._known.pop(node, None)
        self._tried.pop(node, None)
        if (timer := self._timers.pop(node, None)) is not None:
            timer.cancel()


def _used(pods: Sequence[PodView]) -> Iterator[tuple[_Claim, Key]]:
    """The claims of pods that have not ended: those of others may be gone already."""
    for pod in pods:
        if pod.terminal:
            continue
        for container in pod.containers:
            for ref in container.claims:
                yield (pod.uid, ref.claim), Key(ref.claim, pod.namespace)


def _marked(pod: PodView, known: dict[_Claim, ClaimView]) -> PodView:
    names = {ref.claim for container in pod.containers for ref in container.claims}
    claims = {name: known[pod.uid, name] for name in names if (pod.uid, name) in known}
    return with_cpu_claims(pod, claims)
