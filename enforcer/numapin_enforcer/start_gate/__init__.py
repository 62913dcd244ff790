"""Has containers made with their CPUs and NUMA nodes, where the runtime asks before."""
