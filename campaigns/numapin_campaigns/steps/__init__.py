"""A resize or a move is stopped at each of its steps, and parts of numapin are killed there."""
