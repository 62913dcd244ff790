"""Metrics of both daemons; knows nothing of CPUs."""
