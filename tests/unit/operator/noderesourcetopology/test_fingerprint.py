"""The fingerprint of pods is that of the library which the scheduler plug-in uses."""

import json
import random
from pathlib import Path

import pytest

from numapin_operator.noderesourcetopology.fingerprint import fingerprint, xxh64

UPSTREAM = [
    (one["namespace"], one["name"])
    for one in json.loads((Path(__file__).parent / "podfingerprint" / "pods.json").read_text())
]
FEW = [("ns1", "n1"), ("ns1", "n2"), ("ns2", "n1"), ("ns3", "n1"), ("ns3", "n2")]


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        pytest.param(UPSTREAM, "pfp0v001e477a4e3b2fc0ec6", id="a-cluster"),
        pytest.param(FEW, "pfp0v001b92008c14168b3a6", id="few"),
        pytest.param([], "pfp0v001ef46db3751d8e999", id="none"),
    ],
)
def test_vectors_of_the_library(pods: list[tuple[str, str]], expected: str) -> None:
    assert fingerprint(pods) == expected
    shuffled = random.Random(1).sample(pods, len(pods))
    assert fingerprint(shuffled) == expected


@pytest.mark.parametrize(
    ("data", "seed", "expected"),
    [
        pytest.param(b"", 0, 0xEF46DB3751D8E999, id="nothing"),
        pytest.param(b"a", 0, 0xD24EC4F1A98C6E5B, id="a"),
        pytest.param(b"abc", 0, 0x44BC2CF5AD770999, id="abc"),
        pytest.param(
            b"Nobody inspects the spammish repetition", 0, 0xFBCEA83C8A378BF1, id="39-bytes"
        ),
    ],
)
def test_vectors_of_the_hash(data: bytes, seed: int, expected: int) -> None:
    """Source: the README and tests of the packages xxhash (Python) and cespare/xxhash (Go)."""
    assert xxh64(data, seed) == expected


def test_namespace_and_name_are_not_joined() -> None:
    assert fingerprint([("a", "bc")]) != fingerprint([("ab", "c")])
