"""`numapin-operator --check`: whether the installation in a namespace works, for `helm test`."""

import logging
from collections.abc import Iterator, Sequence
from typing import Final

from numapin_api import names
from numapin_client.client import ApiClient, Source
from numapin_client.errors import ClientError, NotFoundError
from numapin_client.resources import (
    CPU_POLICIES,
    LEASES,
    NODE_ASSIGNMENTS,
    PODS,
    Json,
    Key,
)
from numapin_daemon.clock import Clock

COMPONENTS: Final = ("operator", "enforcer", "standby")

PATIENCE_SECONDS: Final = 120.0
"""How long an installation may take: pods start, and a leader of a deleted one is waited for."""

RETRY_SECONDS: Final = 2.0

_COMPONENT: Final = "app.kubernetes.io/component"
_OURS: Final = "app.kubernetes.io/name=numapin"

_log = logging.getLogger(__name__)


class InstallationCheck:
    """Looks until everything works, or for `PATIENCE_SECONDS`."""

    def __init__(self, api: ApiClient, namespace: str, clock: Clock) -> None:
        """Look at nothing yet.

        Args:
            api: an open client with the operator's rights.
            namespace: where numapin is installed.
            clock: limits the time.
        """
        self._api, self._namespace, self._clock = api, namespace, clock
        self._lease = Key(names.LEADER_LEASE, namespace)
        self._first_lease: Json | None = None

    async def run(self) -> bool:
        """Log each problem when it is found, and at last whether everything works."""
        deadline_seconds = self._clock.monotonic() + PATIENCE_SECONDS
        known: Sequence[str] = ()
        while problems := await self._problems():
            for one in problems:
                if one not in known:
                    _log.info("not yet", extra={"problem": one})
            if self._clock.monotonic() >= deadline_seconds:
                for one in problems:
                    _log.error("numapin does not work", extra={"problem": one})
                return False
            known = problems
            await self._clock.sleep(RETRY_SECONDS)
        _log.info("numapin works", extra={"namespace": self._namespace})
        return True

    async def _problems(self) -> list[str]:
        """What does not work; empty if everything does."""
        try:
            for kind in (CPU_POLICIES, NODE_ASSIGNMENTS):
                await self._api.list_chunk(Source(kind), limit=1)
            source = Source(PODS, self._namespace, label_selector=_OURS)
            pods = (await self._api.list_chunk(source, limit=0)).items
            lease = await self._read_lease()
        except ClientError as error:
            return [str(error)]
        first, self._first_lease = self._first_lease, self._first_lease or lease
        return [*pod_problems(pods), *lease_problems(first, lease)]

    async def _read_lease(self) -> Json:
        """The leader's Lease; empty before the first operator has led."""
        try:
            return await self._api.get(LEASES, self._lease)
        except NotFoundError:
            return {}


def pod_problems(pods: Sequence[Json]) -> Iterator[str]:
    """Which pods are not ready, and which component has none."""
    pods = [one for one in pods if "deletionTimestamp" not in one["metadata"]]
    for component in COMPONENTS:
        found = [one for one in pods if one["metadata"]["labels"].get(_COMPONENT) == component]
        if not found:
            workload = "Deployment" if component == "operator" else "DaemonSet"
            yield f"there is no pod of the {component}: kubectl describe its {workload}"
        for one in found:
            conditions = (one.get("status") or {}).get("conditions") or ()
            ready = {each["type"]: each["status"] for each in conditions}.get("Ready")
            if ready != "True":
                name, node = one["metadata"]["name"], one["spec"].get("nodeName") or "no node"
                yield f"the pod {name} ({node}) is not ready: kubectl describe it, and see its log"


def lease_problems(first: Json | None, lease: Json) -> Iterator[str]:
    """Whether no operator leads: one does if it has renewed its Lease since `first` was seen."""
    holder = (lease.get("spec") or {}).get("holderIdentity")
    if not holder:
        yield "no operator leads: see their logs"
    elif not first or _version(first) == _version(lease):
        yield f"{holder} has not renewed its Lease yet"


def _version(lease: Json) -> str:
    return str(lease["metadata"]["resourceVersion"])
