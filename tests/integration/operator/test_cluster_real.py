"""The one implementation of `Cluster` passes the fake's tests on a real API server."""

from collections.abc import AsyncIterator

import pytest

from support.fakes.cluster_contract import ClusterContract
from support.real.operators.operator_world import RealWorld
from support.real.operators.resource_topologies import install_kind


class TestApiCluster(ClusterContract):
    """As the operator's service account; the reports are written as each enforcer's."""

    @pytest.fixture
    async def world(self, world: RealWorld) -> AsyncIterator[RealWorld]:
        """With the rights that components give, and the definition that a scheduler brings."""
        await install_kind(world.plane)
        async with world.component("eviction"), world.component("node-resource-topology"):
            yield world
