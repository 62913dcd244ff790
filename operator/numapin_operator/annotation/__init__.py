"""The annotations that tell a pod which CPUs it has and which will leave it, or its refusal."""
