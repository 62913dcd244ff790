"""The fingerprint of a set of pods, by which a scheduler knows which pods an object accounts for.

Source: github.com/k8stopologyawareschedwg/podfingerprint v0.2.2; xxHash fast digest algorithm,
"XXH64 Algorithm Description". Does no I/O.
"""

from collections.abc import Iterable
from typing import Final

ATTRIBUTE: Final = "nodeTopologyPodsFingerprint"
METHOD_ATTRIBUTE: Final = "nodeTopologyPodsFingerprintMethod"
METHOD: Final = "with-exclusive-resources"
"""Pods count that run and have what the plug-in takes for exclusive; see `PodView.counted`."""

_PREFIX: Final = "pfp0v001"
_MASK: Final = (1 << 64) - 1
_P1: Final = 11400714785074694791
_P2: Final = 14029467366897019727
_P3: Final = 1609587929392839161
_P4: Final = 9650029242287828579
_P5: Final = 2870177450012600261


def fingerprint(pods: Iterable[tuple[str, str]]) -> str:
    """The fingerprint of pods, given as namespace and name, in any order."""
    seeds: dict[str, int] = {}
    hashes: list[int] = []
    for namespace, name in pods:
        seed = seeds.get(namespace)
        if seed is None:
            seed = seeds[namespace] = xxh64(namespace.encode())
        hashes.append(xxh64(name.encode(), seed))
    joined = b"".join(one.to_bytes(8, "little") for one in sorted(hashes))
    return f"{_PREFIX}{xxh64(joined):016x}"


def xxh64(data: bytes, seed: int = 0) -> int:
    """The 64-bit xxHash of some bytes."""
    length, at = len(data), 0
    if length < 32:
        found = seed + _P5
    else:
        lanes = [seed + _P1 + _P2, seed + _P2, seed, seed - _P1]
        while at + 32 <= length:
            for lane in range(4):
                lanes[lane] = _round(lanes[lane], _word(data, at + 8 * lane, 8))
            at += 32
        found = sum(
            _rotated(one & _MASK, by) for one, by in zip(lanes, (1, 7, 12, 18), strict=True)
        )
        for one in lanes:
            found = ((found ^ _round(0, one)) * _P1 + _P4) & _MASK
    return _mixed(_with_rest(found + length & _MASK, data[at:]))


def _with_rest(found: int, rest: bytes) -> int:
    """The hash after the last bytes, of which there are fewer than 32."""
    at = 0
    while at + 8 <= len(rest):
        found = _rotated(found ^ _round(0, _word(rest, at, 8)), 27) * _P1 + _P4 & _MASK
        at += 8
    if at + 4 <= len(rest):
        found = _rotated(found ^ _word(rest, at, 4) * _P1 & _MASK, 23) * _P2 + _P3 & _MASK
        at += 4
    for byte in rest[at:]:
        found = _rotated(found ^ byte * _P5 & _MASK, 11) * _P1 & _MASK
    return found


def _mixed(found: int) -> int:
    found = (found ^ found >> 33) * _P2 & _MASK
    found = (found ^ found >> 29) * _P3 & _MASK
    return found ^ found >> 32


def _round(lane: int, word: int) -> int:
    return _rotated(lane + word * _P2 & _MASK, 31) * _P1 & _MASK


def _rotated(value: int, by: int) -> int:
    return (value << by | value >> 64 - by) & _MASK


def _word(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "little")
