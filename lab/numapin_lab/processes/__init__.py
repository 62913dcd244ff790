"""Processes that the lab starts: their folders, ports, locks and resource use."""
