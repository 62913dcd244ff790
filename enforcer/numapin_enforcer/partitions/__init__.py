"""Cpuset partitions (cgroup v2): an exclusive container's cgroup takes its CPUs from all others."""
