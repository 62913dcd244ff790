"""NUMA nodes whose memory is a device's own, such as a GPU's; its driver allocates it.

The kernel counts this memory as the machine's. Memory without CPUs that belongs to no device, such
as high-bandwidth or CXL memory, is ordinary memory.
"""

import re
from dataclasses import replace
from typing import Final

from numapin_api.cpuset import MAX_NUMA_NODE, MemSet
from numapin_api.topology import NumaNode
from numapin_enforcer.hardware.sysfs.sysfs_tree import NODE_FOLDER, SysfsTree

NODES_OF_A_GPU: Final = 8
"""NUMA nodes that firmware keeps for the memory of one GPU and of its MIG instances.

Source: `nvidia,gpu-mem-pxm-count` in NVIDIA's firmware for Grace, read by
`nv_init_coherent_link_info` of its open kernel modules.
"""

_GPUS: Final = "driver/nvidia/gpus"
_GPU_NODE = re.compile(r"^Node:\s*([0-9]{1,5})\s*$", re.ASCII | re.MULTILINE)


def mark_device_nodes(
    sysfs: SysfsTree, procfs: SysfsTree, nodes: tuple[NumaNode, ...], with_cpus: MemSet
) -> tuple[NumaNode, ...]:
    """The NUMA nodes, each with whether its memory belongs to a device.

    A node with CPUs never does. Of the others, those do that the drivers of GPUs name, and those
    that firmware lists as places of devices which access memory themselves (Generic Initiators).
    Where firmware does not list the node of a GPU, the nodes behind it belong to the GPU too, for
    its MIG instances: those as far from all CPUs, up to the node of another GPU.
    """
    listed = MemSet(sysfs.ids(f"{NODE_FOLDER}/has_generic_initiator") or ()) - with_cpus
    named = read_gpu_nodes(procfs) - with_cpus
    found = listed | named
    for first in named - listed:
        found |= _behind(first, nodes, named, with_cpus)
    return tuple(replace(node, on_device=node.id in found) for node in nodes)


def read_gpu_nodes(procfs: SysfsTree) -> MemSet:
    """The NUMA nodes that the NVIDIA driver names: of each GPU the first one that is kept for it.

    Source: `nv_procfs_read_numa_status` in NVIDIA's open kernel modules.
    """
    texts = (procfs.text(f"{_GPUS}/{gpu}/numa_status") for gpu in procfs.names(_GPUS))
    found = (_GPU_NODE.search(text or "") for text in texts)
    numbers = (int(match[1]) for match in found if match)
    return MemSet(number for number in numbers if number <= MAX_NUMA_NODE)


def _behind(first: int, nodes: tuple[NumaNode, ...], named: MemSet, with_cpus: MemSet) -> MemSet:
    """The online nodes that are kept for a GPU whose first one, which may be offline, this is."""
    until = min((one for one in named if one > first), default=first + NODES_OF_A_GPU)
    kept = range(first, min(until, first + NODES_OF_A_GPU))
    columns = [column for column, node in enumerate(nodes) if node.id in with_cpus]
    far = {
        node.id: [node.distances[column] for column in columns]
        for node in nodes
        if node.id in kept and node.id not in with_cpus
    }
    of_gpu = next(iter(far.values()), None)
    return MemSet(id_ for id_, distances in far.items() if distances == of_gpu)
