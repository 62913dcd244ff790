"""A virtual machine with NUMA nodes, and a node in it."""
