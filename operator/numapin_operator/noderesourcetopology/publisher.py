"""Writes the NodeResourceTopology of each node whose policy says so, and deletes ours of others."""

import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from operator import lt
from typing import Final

from numapin_api.meta.modes import is_enforced
from numapin_client.errors import ClientError, ForbiddenError, NotFoundError
from numapin_client.resources import Json
from numapin_daemon.clock import Clock
from numapin_daemon.logs.log_limit import LogLimit
from numapin_operator.annotation.denied import Denied
from numapin_operator.cluster import Cluster
from numapin_operator.noderesourcetopology.content import content, left
from numapin_operator.noderesourcetopology.owner import digest, foreign_writer, with_owner
from numapin_operator.nodes.decide.present import present_machine
from numapin_operator.nodes.picture import picture_of
from numapin_operator.observe.cache import ClusterState
from numapin_operator.observe.records import PolicyView
from numapin_operator.queues.workqueue import WorkQueue
from numapin_operator.shards.division import Portion
from numapin_operator.telemetry.write_results import STALE

WRITE_SECONDS: Final = 1.0
"""How long after a write the next one of the same node waits."""

AHEAD_SECONDS: Final = 10.0
"""How much of that a node may owe for what pods have got, which is written at once.

A scheduler that does not hear of it binds another pod to the same room.
"""

SWEEP_SECONDS: Final = 300.0
"""How soon is found what others did to our objects, and that they have left theirs."""

AGAIN_SECONDS: Final = 10.0
"""How long after a list that failed the next one waits."""

WORKERS: Final = 4
"""Nodes whose objects are written at the same time."""

NOT_ENABLED: Final = (
    "publish.nodeResourceTopology has no effect, the operator runs without --publish-topologies: "
    "apply manifests/components/node-resource-topology"
)

NO_RIGHT: Final = (
    "publish.nodeResourceTopology has no effect, the operator may not write "
    "NodeResourceTopologies: apply manifests/components/node-resource-topology"
)

NO_KIND: Final = (
    "publish.nodeResourceTopology has no effect, the API server has no NodeResourceTopologies: "
    "install their CustomResourceDefinition (docs/scheduling.md)"
)

FOREIGN: Final = (
    "a NodeResourceTopology is not written, it has another writer: stop that one and delete the "
    "object, or set publish.nodeResourceTopology to None"
)

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Known:
    """An object as it was read or written last.

    Attributes:
        uid: of the object.
        version: its resourceVersion.
        said: the digest of what it says; None if another writer has it.
        left: what its zones have left, see `left`.
        writer: that other writer; None if it is ours.
    """

    uid: str
    version: str
    said: bytes | None
    left: tuple[int, ...] = ()
    writer: str | None = None

    @classmethod
    def of(cls, body: Json) -> "Known":
        """Take in an object."""
        metadata, writer = body["metadata"], foreign_writer(body)
        said = None if writer else digest(body)
        amounts = () if writer else left(body)
        return cls(metadata["uid"], metadata["resourceVersion"], said, amounts, writer)

    def is_less(self, wanted: Json) -> bool:
        """Whether somebody has got something since: schedulers must know of that at once."""
        after = left(wanted)
        return len(after) != len(self.left) or any(map(lt, after, self.left))


class NoPublisher:
    """Writes nothing, and says so once if a policy asks for it."""

    def __init__(self, policy_of: Callable[[str], PolicyView | None]) -> None:
        """Args: `policy_of` is the policy by which a node is planned now."""
        self._policy_of, self._told = policy_of, False

    def tell(self, node: str) -> None:
        """A node was planned."""
        if self._told or (policy := self._policy_of(node)) is None or not _says_so(policy):
            return
        self._told = True
        _log.warning(NOT_ENABLED, extra={"policy": policy.name})

    def other_writer(self, _: str) -> None:
        """Nobody: no object is looked at."""


class Publisher:
    """Brings the object of node after node to what it should be.

    What waits are names of nodes. An object is read once in a term, and again after somebody else
    has changed or deleted it, which a list of metadata shows every few minutes.
    """

    def __init__(
        self,
        cluster: Cluster,
        state: ClusterState,
        policy_of: Callable[[str], PolicyView | None],
        clock: Clock,
        portion: Portion | None = None,
    ) -> None:
        """Write nothing yet.

        Args:
            cluster: where objects are read and written.
            state: the cluster as observed.
            policy_of: the policy by which a node is planned now.
            clock: measures every time.
            portion: the nodes that this operator plans; None for all.
        """
        self._cluster, self._state, self._clock = cluster, state, clock
        self._policy_of, self._portion = policy_of, portion
        self._queue = WorkQueue(clock=clock)
        self._known: dict[str, Known] = {}
        self._next_write: dict[str, float] = {}
        self._writers: dict[str, str] = {}
        self._right = Denied(NO_RIGHT, "NodeResourceTopologies are written again", clock)
        self._kind = Denied(
            NO_KIND, "the API server has NodeResourceTopologies now", clock, _no_kind
        )
        self._lines = LogLimit(at_once=3, per_second=1 / 600, clock=clock)

    def tell(self, node: str) -> None:
        """Have the object of a node compared, if it has one or must have one."""
        if node in self._known or self._publishing(node) is not None:
            self._queue.add(node)

    def _not_before(self, node: str, *, is_urgent: bool) -> float | None:
        """Until when a node is not written; None if it may be."""
        at = self._next_write.get(node, 0.0) - (AHEAD_SECONDS if is_urgent else 0.0)
        return at if at > self._clock.monotonic() else None

    def other_writer(self, node: str) -> str | None:
        """Who else writes the object of a node, which we must write; None if nobody does."""
        return self._writers.get(node)

    async def work(self) -> None:
        """Compare the object of node after node, until cancelled."""
        await self._queue.serve(self._compare, self._note_failure, self._note_defect)

    async def sweep(self) -> None:
        """Find objects that nobody wants, or that others have changed, until cancelled."""
        while True:
            wait_seconds = SWEEP_SECONDS
            try:
                self._take_in(await self._cluster.list_resource_topologies())
            except (ForbiddenError, NotFoundError):
                pass  # a policy that publishes has it reported by the first write
            except ClientError as error:
                _log.warning("cannot list NodeResourceTopologies", extra={"error": str(error)})
                wait_seconds = max(AGAIN_SECONDS, error.retry_after_seconds or 0.0)
            await self._clock.sleep(wait_seconds)

    def _take_in(self, listed: Iterable[Json]) -> None:
        """Have all objects compared that are not as they were known, or must not be there."""
        found = {
            one["name"]: one["resourceVersion"] for one in listed if self._is_ours(one["name"])
        }
        for name in self._known.keys() | found.keys():
            known = self._known.get(name)
            if known is None or known.version != found.get(name):
                self._known.pop(name, None)
                self._queue.add(name)

    def _is_ours(self, node: str) -> bool:
        return self._portion is None or self._portion.has(node)

    def _publishing(self, node: str) -> PolicyView | None:
        """The policy of a node, if it says that the object must be there."""
        policy = self._policy_of(node) if node in self._state.nodes else None
        return policy if policy is not None and _says_so(policy) else None

    async def _compare(self, node: str) -> None:
        """Write or delete one object, as soon as that is allowed."""
        await self._right.wait()
        await self._kind.wait()
        policy = self._publishing(node)
        wanted = self._wanted(node, policy) if policy is not None else None
        if policy is not None and wanted is None:
            return  # what it must say is not known now: it stays
        known = self._known.get(node) or await self._read(node)
        self._note_writer(node, known.writer if known and policy is not None else None)
        if wanted is not None and known is None:
            await self._write(node, self._cluster.create_resource_topology(wanted))
        elif known is None or known.said is None:
            return
        elif wanted is None:
            await self._write(node, self._delete(node, known))
        elif known.said != digest(wanted):
            is_urgent = known.is_less(wanted)
            if (at := self._not_before(node, is_urgent=is_urgent)) is not None:
                self._queue.add(node, at=at)
                return
            metadata = {"uid": known.uid, "resourceVersion": known.version}
            body = wanted | {"metadata": wanted["metadata"] | metadata}
            await self._write(node, self._cluster.patch_resource_topology(body))

    def _wanted(self, node: str, policy: PolicyView) -> Json | None:
        """What the object must be; None if the node or its policy cannot be worked out now."""
        picture = picture_of(self._state, node, governing=policy)
        machine, about = present_machine(picture), picture.node
        if machine is None or about is None:
            return None
        said = content(machine, picture.pods)
        return with_owner(node, about.uid, said)

    async def _read(self, node: str) -> Known | None:
        body = await self._cluster.read_resource_topology(node)
        if body is None:
            return None
        self._known[node] = known = Known.of(body)
        return known

    def _note_writer(self, node: str, writer: str | None) -> None:
        """Have a node planned again whose object has another writer now, or has none any more."""
        if writer == self._writers.get(node):
            return
        if writer is None:
            del self._writers[node]
        else:
            self._writers[node] = writer
            _log.warning(FOREIGN, extra={"node": node, "writer": writer})
        self._state.wake(node)

    async def _delete(self, node: str, known: Known) -> None:
        try:
            await self._cluster.delete_resource_topology(node, known.uid, known.version)
        except NotFoundError:
            return

    async def _write(self, node: str, request: Awaitable[Json | None]) -> None:
        """Make one write; what is known of an object whose write failed is read again."""
        self._known.pop(node, None)
        after = await request
        for denied in (self._right, self._kind):
            denied.note_allowed()
        if after is None:
            self._next_write.pop(node, None)
        else:
            self._known[node] = Known.of(after)
            at = max(self._next_write.get(node, 0.0), self._clock.monotonic())
            self._next_write[node] = at + WRITE_SECONDS

    def _note_defect(self, node: str, error: Exception) -> None:
        if (more := self._lines.admit(node, repr(error))) is not None:
            about = {"node": node, **more}
            _log.error("cannot work out a NodeResourceTopology", extra=about, exc_info=error)

    def _note_failure(self, node: str, error: ClientError, delay: float) -> None:
        if self._right.note(error) or self._kind.note(error) or isinstance(error, STALE):
            return
        if (more := self._lines.admit(node)) is not None:
            again = {"node": node, "error": str(error), "again_in_seconds": round(delay, 1)}
            _log.warning("cannot write a NodeResourceTopology", extra={**again, **more})


def _says_so(policy: PolicyView) -> bool:
    publish = policy.spec.publish.node_resource_topology
    return is_enforced(policy.spec.mode) and publish != "None"


def _no_kind(error: ClientError) -> bool:
    """Whether the kind is not there: an object that is not there is made."""
    return isinstance(error, NotFoundError)
