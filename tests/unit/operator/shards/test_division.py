"""Which nodes are in which shard, and how a holder's name says how many shards there are."""

from collections import Counter

import pytest

from numapin_api import names
from numapin_operator.shards.division import Identity, lease_name, shard_of


@pytest.mark.parametrize(
    ("node", "shards", "shard"),
    [("node-1", 4, 1), ("node-2", 4, 2), ("node-1", 16, 9), ("any", 1, 0)],
)
def test_a_node_is_in_the_same_shard_in_every_release(node: str, shards: int, shard: int) -> None:
    """Replicas of two releases run at the same time during an update."""
    assert shard_of(node, shards) == shard


def test_shards_are_equally_large_within_a_few_percent() -> None:
    counts = Counter(shard_of(f"ip-10-0-{n // 256}-{n % 256}", 16) for n in range(15_000))
    assert min(counts.values()) > 0.85 * 15_000 / 16
    assert max(counts.values()) < 1.15 * 15_000 / 16


def test_shard_0_has_the_lease_of_an_operator_without_shards() -> None:
    assert lease_name(0) == names.LEADER_LEASE
    assert lease_name(3) == f"{names.LEADER_LEASE}-shard-3"


@pytest.mark.parametrize(
    ("holder", "identity"),
    [
        ("pod-1_0a/4", Identity("pod-1_0a", 4)),
        ("pod-1_0a", Identity("pod-1_0a", 1)),
        ("a/b", Identity("a/b", 1)),
        ("", Identity("", 1)),
    ],
    ids=["shards", "none", "another slash", "nobody"],
)
def test_a_holder_says_how_many_shards_there_are(holder: str, identity: Identity) -> None:
    assert Identity.parse(holder) == identity
    assert str(identity) == holder
