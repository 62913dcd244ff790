"""A cluster with pods of all kinds."""

import pytest

from support.fakes.worlds.described_cluster import World, cluster
from support.values.operator import pod_body


@pytest.fixture(scope="module")
def full() -> World:
    """node-1 has 6 CPUs to give: a has 4, b and d are refused; c is on node-2."""
    return cluster(
        pod_body("a", "4"),
        pod_body("b", "4", bound="2026-01-02T00:00:00Z"),
        pod_body("d", "3", bound="2026-01-02T00:00:00Z"),
        pod_body("c", "2", node="node-2"),
        pod_body("pending", "4", node=""),
        pod_body("huge", "9", node=""),
        pod_body("half", "500m"),
    )
