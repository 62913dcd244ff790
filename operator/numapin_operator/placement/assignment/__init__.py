"""The entries of a NodeAssignment, and how many of them fit in."""
