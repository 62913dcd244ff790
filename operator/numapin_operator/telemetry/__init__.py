"""What the operator measures of its work, for Prometheus and OTLP."""
