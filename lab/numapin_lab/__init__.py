"""A real one-node Kubernetes on the developer's machine."""
