"""A device plug-in for tests and examples: the devices are only names, all else is real."""
