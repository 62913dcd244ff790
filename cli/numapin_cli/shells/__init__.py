"""Completion: the scripts for each shell, and the words that fit at the end of a command line."""
