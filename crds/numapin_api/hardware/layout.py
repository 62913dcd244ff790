"""Which CPUs and NUMA nodes a machine has, as a short text that differs if they do."""

import hashlib
from typing import Final
from weakref import WeakKeyDictionary

from numapin_api.topology import Topology

DIGEST_LENGTH: Final = 16

_DIGESTS: Final[WeakKeyDictionary[Topology, str]] = WeakKeyDictionary()


def layout_digest(topology: Topology) -> str:
    """A digest of what lies where: CPUs, cores, caches, sockets and NUMA nodes.

    Sizes of memory are left out: the kernel keeps back another amount at each boot. So is memory of
    devices, which comes and goes with the instances of a GPU and is for no container.
    """
    digest = _DIGESTS.get(topology)
    if digest is None:
        cpus = sorted((c.id, c.core, c.socket, c.uncore_cache, c.numa_node) for c in topology.cpus)
        ordinary = (one.id for one in topology.numa_nodes if not one.on_device)
        numa_nodes = sorted((one, one in topology.mems) for one in ordinary)
        text = repr((cpus, numa_nodes)).encode()
        digest = hashlib.blake2b(text, digest_size=DIGEST_LENGTH // 2).hexdigest()
        _DIGESTS[topology] = digest
    return digest
