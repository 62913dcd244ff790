"""One machine and what is in use of it."""
