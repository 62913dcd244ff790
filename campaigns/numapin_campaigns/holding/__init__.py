"""Random pods on played nodes: held, shared, or refused by kubelets. What each way costs them."""
