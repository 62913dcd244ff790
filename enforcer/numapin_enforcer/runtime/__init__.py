"""The container runtime, over CRI."""
