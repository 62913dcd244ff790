"""Many nodes at once: a row for each, which of them are shown, and what needs attention."""
