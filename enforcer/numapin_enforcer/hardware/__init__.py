"""CPUs, NUMA nodes and PCI devices from sysfs, and their hotplug."""
