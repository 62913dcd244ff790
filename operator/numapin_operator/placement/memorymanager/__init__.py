"""Which memory: after the kubelet's Memory Manager."""
