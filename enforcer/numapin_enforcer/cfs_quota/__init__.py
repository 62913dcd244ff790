"""CFS quotas of exclusive containers: removed, remembered, given back."""
