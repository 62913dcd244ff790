"""JSON merge patches. Does no I/O."""

from collections.abc import Mapping
from typing import Any


def merge_patch(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """The smallest patch that turns `before` into `after`. Source: RFC 7386."""
    patch: dict[str, Any] = {key: None for key in before if key not in after}
    for key, value in after.items():
        old = before.get(key)
        if isinstance(value, dict) and isinstance(old, dict):
            if inner := merge_patch(old, value):
                patch[key] = inner
        elif key not in before or old != value:
            patch[key] = value
    return patch
