"""Pods that a cluster's controllers would create for Deployments, DaemonSets, Jobs and others."""
