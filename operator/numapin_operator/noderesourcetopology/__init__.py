"""NodeResourceTopology objects, by which other schedulers see the NUMA nodes of a node."""
