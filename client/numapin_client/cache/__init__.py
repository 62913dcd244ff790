"""Objects of the API server, listed, watched and kept."""
