"""Machines and plans as text for a terminal."""
