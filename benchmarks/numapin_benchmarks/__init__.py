"""What numapin costs and gains: each module or room with a command measures one thing."""
