"""etcd, kube-apiserver, scheduler and controller-manager, and who talks to them."""
