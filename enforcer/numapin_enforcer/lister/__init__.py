"""Answers the kubelet's podresources API on a socket of its own: see docs/podresources.md."""
