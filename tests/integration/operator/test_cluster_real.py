"""The one implementation of `Cluster` passes the fake's tests on a real API server."""

from collections.abc import AsyncIterator

import pytest

from support.fakes.cluster_contract import ClusterContract
from support.real.operators.operator_world import RealWorld


class TestApiCluster(ClusterContract):
    """As the operator's service account; the reports are written as each enforcer's."""

    @pytest.fixture
    async def world(self, world: RealWorld) -> AsyncIterator[RealWorld]:
        """With the right to evict pods."""
        async with world.component("eviction"):
            yield world
