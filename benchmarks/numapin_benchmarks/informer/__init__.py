"""Cost of a local copy of all pods."""
