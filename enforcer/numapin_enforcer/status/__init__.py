"""What is reported of the node: summary, conditions, Events."""
