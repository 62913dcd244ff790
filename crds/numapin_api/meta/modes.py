"""What the modes of a policy mean for those who act on them."""

from typing import Final, Literal

Mode = Literal["Static", "None", "Dynamic", "Audit"]

AUDIT: Final = "Audit"
"""Planned as with Static; nothing is written on the node, and no pod is told, held or evicted."""


def is_enforced(mode: str) -> bool:
    """Whether pods and nodes are changed by what is planned."""
    return mode not in {"None", AUDIT}
