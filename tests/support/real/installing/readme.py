"""The commands of the README with which a user begins."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[4]
README = ROOT / "README.md"
RELEASED = "dist/numapin-0.1.0"
"""The folder of a release in the README's commands."""


def first_pod() -> list[list[str]]:
    """The arguments of kubectl that lead to the first pinned pod; the examples' paths are absolute.

    Raises:
        ValueError: the README has none, or one of another program.
    """
    section = re.search(
        "first pod: begin -->(.*)<!-- first pod: end", README.read_text(), re.DOTALL
    )
    commands = re.findall(r"^\$ (.*)$", section[1], re.MULTILINE) if section else []
    if not commands or not all(one.startswith("kubectl ") for one in commands):
        raise ValueError(f"{README} must have commands of kubectl there, and has {commands}")
    return [
        [f"{ROOT}/{word}" if word.startswith("examples/") else word for word in one.split()[1:]]
        for one in commands
    ]
