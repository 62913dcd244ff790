"""What every campaign is made of: a plan from a seed, faults, what is observed, verdict, report."""
