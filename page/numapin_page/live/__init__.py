"""The objects of a cluster, kept small, and what of the page changes with each of them."""
