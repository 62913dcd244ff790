"""Which devices a container gets: after the kubelet's Device Manager."""
