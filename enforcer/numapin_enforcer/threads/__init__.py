"""Which CPUs the threads of a cgroup may really use, whatever the cgroup says."""
