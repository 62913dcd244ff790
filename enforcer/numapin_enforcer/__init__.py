"""Acts: makes one node's kernel match its NodeAssignment."""
