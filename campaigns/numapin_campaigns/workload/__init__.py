"""A workload that follows its CPUs, and a container that moves back and forth under it."""
