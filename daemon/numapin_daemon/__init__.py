"""Building blocks of both daemons; independent of CPUs, Kubernetes and our other packages."""
