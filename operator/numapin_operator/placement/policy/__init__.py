"""A policy on one machine: what it keeps back, and for which pods its Node has room."""
