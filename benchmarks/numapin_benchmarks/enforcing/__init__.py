"""Effect, latency and cost of enforcement on one node."""
