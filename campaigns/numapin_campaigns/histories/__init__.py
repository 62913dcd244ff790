"""Histories of a node: what pods, runtimes, users and the kernel do around the enforcer."""
