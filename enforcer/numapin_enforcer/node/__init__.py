"""This node as a machine: its lock, its kubelet's checkpoint, our priority."""
