"""The ordered writes to cgroups that lead from what is there to what must be."""
