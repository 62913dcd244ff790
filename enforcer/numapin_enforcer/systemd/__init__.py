"""systemd as cgroup driver: what it remembers of the kubelet's slices."""
