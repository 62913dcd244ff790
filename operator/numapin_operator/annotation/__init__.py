"""The pod annotation that tells a workload which CPUs it has, and which will leave it."""
