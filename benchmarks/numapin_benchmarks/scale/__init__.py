"""The operator in a large cluster."""
