"""The conditions of both kinds: their reasons, their model, and how they are merged."""
