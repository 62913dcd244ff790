"""What ran on exclusive CPUs between pages of an enforcer."""
