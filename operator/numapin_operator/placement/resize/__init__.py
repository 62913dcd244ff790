"""Containers that get more or fewer CPUs, or more or less memory, while they run."""
