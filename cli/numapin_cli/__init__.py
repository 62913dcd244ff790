"""The numapin command."""
