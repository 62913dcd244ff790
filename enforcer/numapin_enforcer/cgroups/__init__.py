"""The kernel's cgroups: names, values, files, events. Decides nothing."""
