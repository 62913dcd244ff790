"""Events on pods."""
