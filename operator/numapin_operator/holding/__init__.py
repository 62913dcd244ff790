"""Pods that wait for a node: which comes first, which node each gets, and when its gate opens."""
