"""How much hardware a status may list."""

from typing import Final

from numapin_api.cpuset import MAX_ID, MAX_NUMA_NODE

TOPOLOGY_BYTES: Final = 128 << 10
"""How large `status.topology` may be as JSON; a larger one is not decoded.

Real machines need 1 to 6 kB. 8,192 CPUs in pairs of threads are 49 kB, the distances of 64 NUMA
nodes 12 kB, 1,024 PCI devices 25 kB, all warnings 16 kB. See `SPEC_BYTES` for the other parts of
the object.
"""

MAX_CPUS: Final = MAX_ID + 1
MAX_NUMA_NODES: Final = MAX_NUMA_NODE + 1
MAX_GROUP_ID: Final = (1 << 31) - 1
MAX_BYTES: Final = 1 << 60
"""Of memory on one NUMA node, 1 EiB; a schema holds bounds as floats, which end below 2**63."""

MAX_DEVICES: Final = 1024
MAX_WARNINGS: Final = 32
WARNING_LENGTH: Final = 512
MAX_PAGE_SIZES: Final = 8
MAX_NODES_WITH_FREE_PAGES: Final = 64
"""NUMA nodes with huge pages whose free ones are reported; at most some 16 kB."""
