"""Keeps interrupts and unbound kernel work off exclusive CPUs, and restores what was found."""
