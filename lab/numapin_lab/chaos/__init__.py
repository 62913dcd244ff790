"""Pods come and go while parts of numapin and of Kubernetes die, and the kernel is watched."""
