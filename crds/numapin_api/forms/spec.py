"""The spec of a NodeAssignment in both forms: entries (v1alpha1) and lines (v1beta1).

Every program works with the form of v1alpha1, and converts where it reads or writes an object. No
webhook converts, so an object says the same under both versions, and either form may come.
Does no I/O.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from numapin_api.forms.lines import LineError, parse_line

Json = dict[str, Any]

_POOLS: Final = {"reserved": "reservedCPUs", "shared": "sharedCPUs"}
_REFUSALS: Final = {
    "refused": "refusals",
    "refusedOmitted": "refusalsOmitted",
    "refusedResizes": "resizeRefusals",
    "unassigned": "unassigned",
}
_MOVED: Final = frozenset({"assigned", "releaseTime"})

OPERATOR_STATUS: Final = frozenset({*_REFUSALS.values(), "refused", "outdated"})
"""Fields of a NodeAssignment's status that its operator writes, if the spec has lines."""


@dataclass(frozen=True, slots=True)
class ReadSpec:
    """The spec of a NodeAssignment.

    Attributes:
        wire: the spec as v1alpha1 has it, of any shape and not checked.
        has_lines: whether it has the form of v1beta1; see `has_lines`.
        lines: its lines, in the order of the containers; empty if it has the form of v1alpha1.
        since: for each container, the generation that first had its CPUs and NUMA nodes. With the
            form of v1alpha1 that is not known: it counts as new.
        faults: the lines that are wrong, as path and problem; `wire` has no containers then.
    """

    wire: Json
    has_lines: bool = False
    lines: tuple[str, ...] = ()
    since: tuple[int, ...] = ()
    faults: tuple[str, ...] = ()


def has_lines(spec: Mapping[str, Any]) -> bool:
    """Whether a spec has the form of v1beta1; one without pools may have either."""
    pools = spec.get("pools")
    is_named = isinstance(pools, Mapping) and not _POOLS.keys() & pools.keys() and bool(pools)
    return is_named or bool(spec.get("assigned"))


def read_spec(body: Mapping[str, Any]) -> ReadSpec:
    """The spec of a NodeAssignment of either form, with what its status says of refused pods."""
    raw = body.get("spec")
    if not isinstance(raw, dict):
        return ReadSpec(raw or {})
    wire = {key: value for key, value in raw.items() if key not in _MOVED}
    if "releaseTime" in raw:
        wire["releaseAt"] = raw["releaseTime"]
    status = body.get("status")
    if isinstance(status, Mapping):
        wire = spec_refusals(status) | wire
    if not has_lines(raw):
        return _of_entries(wire, body["metadata"].get("generation", 1))
    if isinstance(pools := raw.get("pools"), dict):
        known = {new: old for old, new in _POOLS.items()}
        wire["pools"] = {known.get(key, key): value for key, value in pools.items()}
    return _of_lines(wire, raw.get("assigned") or [])


def _of_entries(wire: Json, generation: int) -> ReadSpec:
    listed = wire.get("containers")
    count = len(listed) if isinstance(listed, list) else 0
    return ReadSpec(wire, since=(generation,) * count)


def _of_lines(wire: Json, assigned: object) -> ReadSpec:
    if not isinstance(assigned, list):
        fault = f"spec.assigned: should be a list, not {assigned!r:.60}"
        return ReadSpec(wire, has_lines=True, faults=(fault,))
    entries, since, faults = list[Json](), list[int](), list[str]()
    for index, line in enumerate(assigned):
        try:
            entry, first = parse_line(line)
        except LineError as error:
            faults.append(f"spec.assigned[{index}]: {error}")
        else:
            entries.append(entry)
            since.append(first)
    if faults:
        return ReadSpec(wire, has_lines=True, faults=tuple(faults))
    whole = wire | {"containers": entries}
    return ReadSpec(whole, has_lines=True, lines=tuple(assigned), since=tuple(since))


def spec_with_lines(wire: Mapping[str, Any], lines: Sequence[str]) -> Json:
    """The spec as v1beta1 has it.

    Args:
        wire: the spec as v1alpha1 has it; its containers are left out, and so is what is refused.
        lines: the lines of its containers; see `lines.print_line`.
    """
    gone = {"containers", "releaseAt", "pools", *_REFUSALS}
    spec = {key: value for key, value in wire.items() if key not in gone}
    if pools := wire.get("pools"):
        spec["pools"] = {_POOLS[key]: value for key, value in pools.items()}
    if release_at := wire.get("releaseAt"):
        spec["releaseTime"] = release_at
    return spec | ({"assigned": list(lines)} if lines else {})


def refusals_of(wire: Mapping[str, Any]) -> Json:
    """What the status says of refused pods as v1beta1 has it, of a spec as v1alpha1 has it.

    Empty fields are left out.
    """
    return {new: wire[old] for old, new in _REFUSALS.items() if wire.get(old)}


def spec_refusals(status: Mapping[str, Any]) -> Json:
    """The part of a spec as v1alpha1 has it that v1beta1 has in the status."""
    return {old: status[new] for old, new in _REFUSALS.items() if new in status}


def without_refusals(status: Mapping[str, Any]) -> Json:
    """The other fields of a status."""
    return {key: value for key, value in status.items() if key not in _REFUSALS.values()}
