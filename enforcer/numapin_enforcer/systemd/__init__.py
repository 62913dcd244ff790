"""systemd as cgroup driver: the cpusets that it has for the kubelet's slices."""
