"""What else runs on exclusive CPUs, by name, for `numapin check`."""
