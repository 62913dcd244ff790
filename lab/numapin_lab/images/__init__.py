"""Numapin's own images, built from this checkout for the pods of a lab."""
