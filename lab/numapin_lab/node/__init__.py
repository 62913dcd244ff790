"""A node on this machine: kubelet, containerd, numapin's programs, and what the kernel shows."""
