"""What runs on a service's CPU besides it, for each way of keeping others off."""
