"""Refused pods that the policy wants evicted."""
