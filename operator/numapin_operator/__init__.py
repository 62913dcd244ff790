"""The operator: decides which container of each node gets which CPUs."""
