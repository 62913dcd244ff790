"""The container runtime's NRI socket: what it asks before it makes or starts a container."""
