"""Faults that a chaos run injects: processes killed, cpusets overwritten."""
