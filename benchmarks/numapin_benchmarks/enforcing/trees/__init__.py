"""Enforcement on cgroups without a cluster, or with an API server alone."""
