"""What the fields of a spec are called in v1beta1, by their names in v1alpha1.

A spec is checked as v1alpha1 has it. A person looks for what is wrong in the object as it is, which
has a line where v1alpha1 has an entry with fields. Does no I/O.
"""

import re
from typing import Final

_ENTRY: Final = re.compile(r"spec\.containers\[(\d*)\](?:\.([\w.\[\]]+))?")
"""The path of an entry, or of a field of it."""

_OTHERS: Final = {
    "spec.containers": "spec.assigned",
    "spec.pools.reserved": "spec.pools.reservedCPUs",
    "spec.pools.shared": "spec.pools.sharedCPUs",
    "spec.releaseAt": "spec.releaseTime",
}


def fault_of_line(fault: str) -> str:
    """A fault, which is a path and a problem: `spec.containers[3].cpus: should be ...`.

    A line has no fields: `spec.assigned[3]: cpus should be ...`.
    """
    path, colon, problem = fault.partition(":")
    found = _ENTRY.fullmatch(path)
    field = found[2] if found is not None else None
    return f"{path_of_line(path)}{colon}{f' {field}' if field else ''}{problem}"


def path_of_line(path: str) -> str:
    """The path of a field; that of a line for all fields of an entry."""
    found = _ENTRY.fullmatch(path)
    return f"spec.assigned[{found[1]}]" if found is not None else _OTHERS.get(path, path)


def unknown_of_lines(path: str) -> str:
    """The path of a field that this enforcer does not know: `spec.assigned[].future`."""
    found = _ENTRY.fullmatch(path)
    return f"{path_of_line(path)}.{found[2]}" if found is not None else path_of_line(path)
