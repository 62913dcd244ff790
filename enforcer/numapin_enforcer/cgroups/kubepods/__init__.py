"""The kubelet's cgroups for pods: where they are, what they may use, what runs outside of them."""
