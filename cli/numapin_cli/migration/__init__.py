"""What becomes of a node on which the kubelet pinned containers before."""
