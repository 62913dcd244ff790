"""Layouts of the assignment of a node: kinds, objects, and the writes of a placed pod."""
