"""What is read from the API server about one node, because no watch tells it."""
