"""Resources of containers that are sent to the runtime."""
