"""Events of the kernel about changed cgroups."""
