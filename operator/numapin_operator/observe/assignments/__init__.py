"""NodeAssignments with what their enforcers report, as slim frozen values."""
