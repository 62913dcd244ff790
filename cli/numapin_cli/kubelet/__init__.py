"""The kubelet's own static policies: its configuration and its pools as ours, and back."""
