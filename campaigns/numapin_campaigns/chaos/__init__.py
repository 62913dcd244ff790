"""Chaos runs: pods start and end while parts are killed, and the kernel is watched."""
