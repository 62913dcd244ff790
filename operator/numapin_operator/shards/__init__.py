"""Several operators share the nodes: which shard a node is in, and who holds which shard."""
