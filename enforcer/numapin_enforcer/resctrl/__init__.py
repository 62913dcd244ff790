"""Shares out caches and memory bandwidth by resctrl, and restores what was found."""
