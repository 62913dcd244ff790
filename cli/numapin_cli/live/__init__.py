"""A real cluster, read for a command: its API server, its objects and their changes."""
