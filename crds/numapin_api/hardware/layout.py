"""Which CPUs and NUMA nodes a machine has, as a short text that differs if they do."""

import hashlib
from typing import Final
from weakref import WeakKeyDictionary

from numapin_api.topology import Topology

DIGEST_LENGTH: Final = 16

_DIGESTS: Final[WeakKeyDictionary[Topology, str]] = WeakKeyDictionary()


def layout_digest(topology: Topology) -> str:
    """A digest of what lies where: CPUs, cores, caches, sockets and NUMA nodes.

    Sizes of memory are left out: the kernel keeps back another amount at each boot.
    """
    digest = _DIGESTS.get(topology)
    if digest is None:
        cpus = sorted((c.id, c.core, c.socket, c.uncore_cache, c.numa_node) for c in topology.cpus)
        numa_nodes = sorted((one.id, one.id in topology.mems) for one in topology.numa_nodes)
        text = repr((cpus, numa_nodes)).encode()
        digest = hashlib.blake2b(text, digest_size=DIGEST_LENGTH // 2).hexdigest()
        _DIGESTS[topology] = digest
    return digest
