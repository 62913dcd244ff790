"""Log lines: their form, and how many of a kind are logged."""
