"""The devices of the node and of its pods, as the kubelet's podresources API lists them."""
