"""What would help a pod: an edit, other requests, or the end of other pods."""
