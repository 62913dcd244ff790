"""The objects in which a node's enforcer reports: they come and go with its NodeAssignment."""

import logging
from typing import Final

from numapin_client.errors import AlreadyExistsError, ClientError, NotFoundError
from numapin_client.resources import NODE_REPORTS, NODE_TOPOLOGIES
from numapin_daemon.logs.log_limit import LogLimit
from numapin_operator.cluster import Cluster
from numapin_operator.observe.cache import ClusterState

_log = logging.getLogger(__name__)

_KINDS: Final = (NODE_REPORTS, NODE_TOPOLOGIES)


class NodeObjects:
    """Creates and deletes NodeReports and NodeTopologies; both are empty at first.

    Without them an enforcer reports in the NodeAssignment, as those of 0.1 do.
    """

    def __init__(self, cluster: Cluster, state: ClusterState) -> None:
        """Have done nothing yet."""
        self._cluster, self._state = cluster, state
        self._lines = LogLimit()

    async def settle(self, name: str) -> None:
        """Bring the objects of one node to what they should be.

        If that fails, the node is served as before: its pods get their CPUs.
        """
        is_assigned = name in self._state.assignments
        wanted = is_assigned and self._state.writes_lines
        known = (name in self._state.reports, name in self._state.topologies)
        for kind, is_there in zip(_KINDS, known, strict=True):
            if is_there is wanted:
                continue
            try:
                if wanted:
                    await self._cluster.create_node_object(kind, name)
                elif is_assigned or await self._cluster.read_assignment(name) is None:
                    await self._cluster.delete_node_object(kind, name)
            except (AlreadyExistsError, NotFoundError):
                continue  # our watch is late
            except ClientError as error:
                if (more := self._lines.admit(name, str(error))) is not None:
                    about = {"node": name, "kind": kind.kind, "error": str(error), **more}
                    _log.warning("cannot create or delete an object for an enforcer", extra=about)
                raise
