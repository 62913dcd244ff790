"""Pods: from the API server's objects to the views that planning reads. Does no I/O."""
