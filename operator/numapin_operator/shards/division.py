"""Into how many shards the nodes are divided, and which nodes are in which.

Why it is so: docs/decisions/0014-shards-of-nodes.md. Does no I/O.
"""

from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from numapin_api import names

MOST_SHARDS: Final = 16
"""One replica serves 5,000 nodes. The operator's role names each Lease that it may update."""

_HASH_BYTES: Final = 8


def shard_of(node: str, shards: int) -> int:
    """The shard of a node: the same in every process and in every release."""
    digest = blake2b(node.encode(), digest_size=_HASH_BYTES).digest()
    return int.from_bytes(digest, "big") % shards


def lease_name(shard: int) -> str:
    """The name of a shard's Lease. That of shard 0 is the one Lease of undivided operators."""
    return names.LEADER_LEASE if shard == 0 else f"{names.LEADER_LEASE}-shard-{shard}"


@dataclass(frozen=True, slots=True)
class Identity:
    """Who holds a Lease, and into how many shards that operator divides the nodes.

    Attributes:
        name: unique for each process; empty for nobody.
        shards: 1 for an operator that leads all nodes.
    """

    name: str
    shards: int = 1

    @classmethod
    def parse(cls, holder: str) -> "Identity":
        """Read `holderIdentity`. An operator of a release without shards names no number."""
        name, slash, number = holder.rpartition("/")
        if slash and number.isdecimal():
            return cls(name, int(number))
        return cls(holder)

    def __str__(self) -> str:
        return self.name if self.shards == 1 or not self.name else f"{self.name}/{self.shards}"


@dataclass(frozen=True, slots=True)
class Portion:
    """The nodes of one shard."""

    shard: int
    shards: int

    def has(self, node: str) -> bool:
        """Whether a node is one of them."""
        return shard_of(node, self.shards) == self.shard
