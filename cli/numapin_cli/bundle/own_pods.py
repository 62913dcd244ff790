"""numapin's own pods in a report: what runs, with which arguments, and how it fares.

Does no I/O.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from numapin_cli.bundle.reduced import reduced

Json = dict[str, Any]

MASK: Final = "(masked)"

_CREDENTIAL: Final = re.compile(
    r"token|secret|passw|credential|header|key|auth|cookie|cert", re.IGNORECASE
)
_IN_TEXT: Final = (
    (re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}"), rf"\1 {MASK}"),
    (re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*"), MASK),
    (re.compile(r"(://)[^/\s@\"']+@"), rf"\1{MASK}@"),
    (
        re.compile(
            r"(?i)\b([a-z_-]*(?:token|secret|password|passwd|api[_-]?key))"
            r"(\"?\s*[=:]\s*\"?)[^\s\",;&]+"
        ),
        rf"\1\2{MASK}",
    ),
)


def masked(text: str) -> str:
    """A text without what looks like a credential: bearer tokens, JWTs, passwords in URLs."""
    for pattern, instead in _IN_TEXT:
        text = pattern.sub(instead, text)
    return text


def masked_arguments(arguments: Iterable[str]) -> list[str]:
    """Arguments of a program; the values of flags that may hold a credential are masked."""
    return list(_masked_arguments(arguments))


def _masked_arguments(arguments: Iterable[str]) -> Iterator[str]:
    hide_next = False
    for argument in arguments:
        name, equals, _ = argument.partition("=")
        if hide_next and not argument.startswith("-"):
            yield MASK
            hide_next = False
        elif argument.startswith("-") and _CREDENTIAL.search(name):
            yield f"{name}={MASK}" if equals else name
            hide_next = not equals
        else:
            yield masked(argument)
            hide_next = False


def own_pod(body: Mapping[str, Any]) -> Json:
    """One of numapin's own pods: as any other, with its images and arguments."""
    found = reduced("Pod", body)
    for key in ("initContainers", "containers"):
        raw = (body.get("spec") or {}).get(key) or []
        for one, container in zip(found["spec"].get(key) or [], raw, strict=True):
            one["image"] = masked(str(container.get("image", "")))
            one["args"] = masked_arguments(map(str, container.get("args") or ()))
    statuses = (body.get("status") or {}).get("containerStatuses") or []
    for one, status in zip(found["status"].get("containerStatuses") or [], statuses, strict=True):
        one["imageID"] = masked(str(status.get("imageID", "")))
    return found
