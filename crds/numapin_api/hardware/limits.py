"""How much hardware a status may list."""

from typing import Final

from numapin_api.cpuset import MAX_ID, MAX_NUMA_NODE

TOPOLOGY_BYTES: Final = 128 << 10
"""How large `status.topology` may be as JSON; a larger one is not decoded.

Real machines need 1 to 6 kB. 8,192 CPUs in pairs of threads are 49 kB, the distances of 64 NUMA
nodes 12 kB, 1,024 PCI devices 25 kB, 256 names of devices with one address each 10 kB, all warnings
16 kB, 256 PCI roots 7 kB. See `SPEC_BYTES` for the other parts of the object.
"""

MAX_CPUS: Final = MAX_ID + 1
MAX_NUMA_NODES: Final = MAX_NUMA_NODE + 1
MAX_GROUP_ID: Final = (1 << 31) - 1
MAX_BYTES: Final = 1 << 60
"""Of memory on one NUMA node, 1 EiB; a schema holds bounds as floats, which end below 2**63."""

MAX_DEVICES: Final = 1024
MAX_NAMES: Final = 256
MAX_PCI_ROOTS: Final = 256
MAX_ROOT_NODES: Final = 8
"""NUMA nodes of the devices below one PCI root; more say nothing of where a device is."""

MAX_PATHS: Final = 4
"""PCI functions of one disk; it has several with NVMe multipath."""

MAX_DEVICE_ROWS: Final = 256
"""Of the devices of a node that have NUMA nodes, by resource and NUMA nodes."""

MAX_CONTAINER_DEVICES: Final = 1024
"""Rows of the devices that containers have."""

MAX_DEVICE_IDS: Final = 8
DEVICE_ID_LENGTH: Final = 128

MAX_WARNINGS: Final = 32
WARNING_LENGTH: Final = 512
MAX_PAGE_SIZES: Final = 8
MAX_NODES_WITH_FREE_PAGES: Final = 64
"""NUMA nodes with huge pages whose free ones are reported; at most some 16 kB."""

PCI_ADDRESS: Final = r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]"
PCI_ROOT: Final = r"pci[0-9a-f]{4,8}:[0-9a-f]{2}"
DEVICE_NAME: Final = (
    rf"^(net/[A-Za-z0-9_.:@-]{{1,15}}|block/[A-Za-z0-9_.:!-]{{1,31}})="
    rf"{PCI_ADDRESS}(,{PCI_ADDRESS})*$"
)
"""An interface's name has at most 15 bytes (IFNAMSIZ), a disk's at most 31 (DISK_NAME_LEN)."""
