"""What the kernel's files below /sys and /proc say of CPUs, NUMA nodes and PCI devices."""
