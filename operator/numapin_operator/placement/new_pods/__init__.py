"""New pods: which are placed, and which wait."""
