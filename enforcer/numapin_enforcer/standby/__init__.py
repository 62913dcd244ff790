"""The second process of a node: fences new containers while the enforcer is down."""
