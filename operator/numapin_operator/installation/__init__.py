"""One installation leads: the Lease, what other installations hold, and what this one lacks."""
