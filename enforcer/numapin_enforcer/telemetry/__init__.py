"""What the enforcer measures of its node, for Prometheus and OTLP."""
