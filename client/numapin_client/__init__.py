"""The API server edge, used by the operator and the enforcer alike."""
