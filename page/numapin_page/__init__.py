"""The live page of `numapin serve`: a cluster in a browser, read-only."""
