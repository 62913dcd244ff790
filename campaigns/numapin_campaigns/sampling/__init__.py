"""Read real cgroups a thousand times a second, and compare them with what is reported."""
