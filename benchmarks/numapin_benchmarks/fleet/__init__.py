"""What commands cost on a cluster of thousands of nodes, whose API server is played."""
