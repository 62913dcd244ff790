"""What each cgroup should have, and the ordered writes that lead there. Does no I/O."""
