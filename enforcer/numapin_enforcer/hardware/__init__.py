"""What sysfs says of CPUs, NUMA nodes and devices, and when CPUs come and go."""
