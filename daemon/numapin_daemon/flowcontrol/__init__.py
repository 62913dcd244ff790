"""How often something may be done: back-off after failures, and limits on a rate."""
