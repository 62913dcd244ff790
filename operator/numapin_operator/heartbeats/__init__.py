"""Which enforcers are silent, by the Leases that they renew, and the report of it."""
