"""The contract: what the operator, the enforcer and users agree on, as values."""
