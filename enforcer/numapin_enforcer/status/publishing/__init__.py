"""The objects of this node that the enforcer writes: what the API server has, and patches of it."""
