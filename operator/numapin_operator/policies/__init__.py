"""One CpuPolicy: the nodes and pods that it selects, and its status."""
