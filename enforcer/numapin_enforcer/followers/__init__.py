"""What follows each pass: it is given the pass, acts on it, and has a state to report."""
