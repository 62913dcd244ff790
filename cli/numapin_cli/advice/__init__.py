"""Why a pod has or lacks its own CPUs, and what would help: tried with the operator's planner."""
