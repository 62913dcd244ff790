"""Counters of the kernel, sampled: who uses the CPUs of exclusive containers."""
