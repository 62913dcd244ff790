"""Numapin as users install it: its images, its manifests, and pods on a node with a network."""
