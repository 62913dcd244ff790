"""The one implementation of `Cluster` passes the fake's tests on a real API server."""

from support.fakes.cluster_contract import ClusterContract


class TestApiCluster(ClusterContract):
    """As the operator's service account; the reports are written as each enforcer's."""
