"""What a CDI file of the DRA driver dra.cpu says about CPUs.

Source: kubernetes-sigs/dra-driver-cpu v0.2.0, pkg/driver, `CdiManager`; the Container Device
Interface, SPEC.md.

Does no I/O.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from numapin_api.cpuset import CpuSet, ListFormatError
from numapin_api.schema.plain import ClaimedCpus

VARIABLE: Final = "DRA_CPUSET_"
"""A variable of this name and the claim's UID tells a container its CPUs."""

_UID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


class CdiSpecError(ValueError):
    """A file is not as the driver writes it; the text says where."""


def claimed_cpus(content: bytes) -> Iterator[ClaimedCpus]:
    """The claims of one file.

    Raises:
        CdiSpecError: it is not such a file.
    """
    try:
        spec = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise CdiSpecError(f"it is not JSON: {error}") from error
    for device in _list(_object(spec).get("devices")):
        edits = _object(_object(device).get("containerEdits"))
        for variable in _list(edits.get("env")):
            name, _, value = str(variable).partition("=")
            if name.startswith(VARIABLE):
                yield ClaimedCpus(_uid(name), _cpus(value))


def _uid(name: str) -> str:
    uid = name.removeprefix(VARIABLE)
    if not _UID.fullmatch(uid):
        raise CdiSpecError(f"{name!r:.80} ends with no UID of a claim")
    return uid


def _cpus(text: str) -> CpuSet:
    try:
        return CpuSet.parse(text)
    except ListFormatError as error:
        raise CdiSpecError(str(error)) from error


def _object(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise CdiSpecError(f"{value!r:.40} is not an object")
    return value


def _list(value: object) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise CdiSpecError(f"{value!r:.40} is not a list")
    return value
