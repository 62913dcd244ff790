"""Which CPUs: the static policy's packing, after the kubelet's CPU Manager."""
