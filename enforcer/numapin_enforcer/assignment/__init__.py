"""The NodeAssignment that this node acts on: watched, validated, accepted, saved on disk."""
