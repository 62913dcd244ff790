"""Which CPUs and NUMA nodes a container gets: pure functions over values."""
