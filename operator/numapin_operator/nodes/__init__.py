"""One node's NodeAssignment: planned, written; refused pods get an Event or are evicted."""
