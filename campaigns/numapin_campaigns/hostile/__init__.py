"""Random valid and hostile objects against the operator and a real API server."""
