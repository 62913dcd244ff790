"""The programs of a cluster: where each is found, or how it is built."""
