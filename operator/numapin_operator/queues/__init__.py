"""What waits, and whose turn it is."""
