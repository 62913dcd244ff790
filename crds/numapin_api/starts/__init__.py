"""Containers that wait for their assignment before they start."""
