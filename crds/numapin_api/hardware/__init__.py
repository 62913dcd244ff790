"""A node's hardware in its other forms: in a status, and as a machine file."""
