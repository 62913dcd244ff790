"""How several operators count the nodes of a policy together."""
