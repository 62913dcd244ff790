"""One pod's way from its requests to its CPUs and memory, and to those of its containers."""
