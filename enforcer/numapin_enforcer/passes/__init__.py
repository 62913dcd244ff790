"""What a pass starts from, and what it does to the cgroups."""
