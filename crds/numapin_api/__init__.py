"""The contract of operator, enforcer and users: both kinds, as values. Does no I/O."""
