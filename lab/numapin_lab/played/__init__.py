"""A large cluster: control plane and operator are real, the nodes are played."""
