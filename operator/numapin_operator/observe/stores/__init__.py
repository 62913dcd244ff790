"""What the cache of the cluster is made of."""
