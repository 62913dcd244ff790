"""What a chaos run observes of kernel, cluster and logs, and what it concludes from that."""
