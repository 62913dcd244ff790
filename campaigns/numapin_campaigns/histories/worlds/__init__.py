"""Every history of tiny nodes."""
