"""Placement compared with the kubelet's own managers."""
