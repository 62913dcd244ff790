"""Pure: desired and observed cpusets become ordered writes."""
