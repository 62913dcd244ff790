"""What the enforcer reports: conditions, status, Events, probes."""
