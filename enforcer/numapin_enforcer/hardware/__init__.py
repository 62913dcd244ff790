"""CPUs, NUMA nodes and PCI devices from sysfs, and their hotplug; files are read in sysfs_tree."""
