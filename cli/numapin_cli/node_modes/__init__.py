"""Nodes that are paused, released and resumed by an annotation."""
