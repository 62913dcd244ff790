"""Containers that are moved to other CPUs."""
