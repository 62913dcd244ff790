"""Pods that wait for a node: as the API server has them, and which node has a place for them."""
