"""Cgroups that containers have made inside their own."""
