"""One node's assignment: decided, written, refused pods reported or evicted."""
