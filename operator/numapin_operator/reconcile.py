"""Pure: policies, topologies, pods and what was decided before become NodeAssignments."""
