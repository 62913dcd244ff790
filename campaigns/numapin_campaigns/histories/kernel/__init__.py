"""The model of the cpuset hierarchy that histories are played on; unit tests use it as well."""
