"""Processes of no pod: which CPUs their cgroups have, and had before the enforcer set them."""
