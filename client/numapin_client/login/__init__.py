"""How to reach and log in to an API server: service account, kubeconfig."""
