"""What is known of the cluster: records, pods, and where they come from."""
