"""What a placed pod costs the API server, in several layouts of a NodeAssignment."""
