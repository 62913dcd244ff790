"""The node: its lock, its kubelet's checkpoint, our real-time priority."""
