"""Decides: computes one NodeAssignment for each node."""
