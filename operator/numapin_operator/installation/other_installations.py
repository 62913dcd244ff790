"""Whether another installation's operator leads: its Lease has our name in another namespace.

Two installations in one cluster would overwrite each other's NodeAssignments for ever. So an
operator takes its own Lease, and then leads only if no other one is held. Of two that start at the
same time, the one that takes its Lease later sees the other's: at most one leads.

The admission policy numapin-operator-lease lets only those write such a Lease who may write
NodeAssignments: a tenant could stop the operator by one in a namespace of its own.
"""

import logging
from typing import Final

from numapin_client.client import ApiClient, Source
from numapin_client.errors import ClientError
from numapin_client.resources import LEASES, Key
from numapin_daemon.clock import Clock
from numapin_operator.installation.observed_lease import ObservedLease

MOST_LEASE_SECONDS: Final = 60.0
"""A Lease that was not renewed for so long has expired. It may be older than the admission policy,
and be of a tenant who wanted it to last for years."""

REMEDY: Final = (
    "a cluster has one installation of numapin: delete the namespace of the one that you do not "
    "want, and then apply the manifests of the other one again"
)

_log = logging.getLogger(__name__)


class OtherInstallationError(ClientError):
    """The operator of another installation holds its Lease."""

    def __init__(self, namespace: str, holder: str) -> None:
        super().__init__(
            f"the operator of another installation leads, in the namespace {namespace} "
            f"({holder}); {REMEDY}"
        )
        self.namespace, self.holder = namespace, holder


class OtherInstallations:
    """The Leases of our name in other namespaces, each with its age by our own clock."""

    def __init__(self, api: ApiClient, lease: Key, lease_seconds: float, clock: Clock) -> None:
        """Have seen none yet.

        Args:
            api: an open client.
            lease: our own Lease.
            lease_seconds: how long a Lease lasts that does not say so.
            clock: measures how long a Lease has not changed.
        """
        self._api, self._lease, self._lease_seconds, self._clock = api, lease, lease_seconds, clock
        self._source = Source(LEASES, field_selector=f"metadata.name={lease.name}")
        self._seen: dict[str, ObservedLease] = {}

    async def check(self) -> None:
        """Do nothing if no other installation's operator leads, as of now.

        Raises:
            OtherInstallationError: one leads.
            ClientError: the API server does not say.
        """
        leases = (await self._api.list_chunk(self._source, limit=0)).items
        others = {one["metadata"]["namespace"]: one for one in leases}
        others.pop(self._lease.namespace, None)
        seen, self._seen = self._seen, {}
        for namespace, body in sorted(others.items()):
            one = seen.get(namespace) or self._unseen()
            one.observe(body)
            self._seen[namespace] = one
        for namespace, one in self._seen.items():
            if not one.expired():
                raise OtherInstallationError(namespace, one.holder)

    def _unseen(self) -> ObservedLease:
        return ObservedLease(self._clock, self._lease_seconds, MOST_LEASE_SECONDS)
