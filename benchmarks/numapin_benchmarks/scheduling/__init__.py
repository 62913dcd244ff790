"""Pods that are refused after binding, by the scheduler that binds them."""
