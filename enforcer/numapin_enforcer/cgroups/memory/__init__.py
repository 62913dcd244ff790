"""Binds containers to NUMA nodes: what they use, what is free there, and moves of their pages."""
