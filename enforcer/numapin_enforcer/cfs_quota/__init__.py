"""CFS quotas of exclusive containers: removed, saved on disk, and restored."""
