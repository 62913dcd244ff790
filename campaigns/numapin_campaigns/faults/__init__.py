"""Every fault that campaigns inject. A new one is a file here, and a line in `registry`."""
