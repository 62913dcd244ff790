"""The login to an API server: from a service account or a kubeconfig."""
