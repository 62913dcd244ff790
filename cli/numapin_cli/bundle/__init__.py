"""A report: what a bug report needs of a cluster and of a node, without secrets, in one file."""
