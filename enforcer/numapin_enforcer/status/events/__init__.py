"""Events about the NodeAssignment, and what is remembered so that they are few."""
