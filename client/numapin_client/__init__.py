"""The client of the API server, for the operator and the enforcer."""
