"""Parts of the status of both kinds: of containers, of a node, of a policy."""
