"""What the kernel has of a spec: which containers are exclusive, and what the others lack."""
