"""etcd, kube-apiserver, scheduler and controller-manager, and their clients."""
