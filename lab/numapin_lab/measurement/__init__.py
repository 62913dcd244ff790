"""What benchmarks and tests measure: when cgroups change, and the figures of several runs."""
