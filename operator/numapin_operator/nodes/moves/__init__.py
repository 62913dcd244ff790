"""Containers that are moved: step by step, in time, with everyone concerned told."""
