"""What is known of the cluster, and where that comes from."""
