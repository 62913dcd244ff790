"""Which NUMA nodes serve every resource: after the kubelet's Topology Manager."""
