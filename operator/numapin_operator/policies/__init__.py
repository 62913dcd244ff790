"""One policy's status: which nodes it governs, and what became of it there."""
