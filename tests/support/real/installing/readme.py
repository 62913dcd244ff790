"""The commands of the pages that users type."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[4]
README = ROOT / "README.md"
OPERATIONS = ROOT / "docs" / "operations.md"
RELEASED = "dist/numapin-0.1.0"
"""The folder of a release in the README's commands."""


def first_pod() -> list[list[str]]:
    """The arguments of kubectl that lead to the first pinned pod; the examples' paths are absolute.

    Raises:
        ValueError: the README has none, or one of another program.
    """
    return [
        [f"{ROOT}/{word}" if word.startswith("examples/") else word for word in words]
        for words in commands(README, "first pod")
    ]


def release_nodes(image: str) -> list[str]:
    """The arguments of numapin that release nodes without numapin's pods.

    Raises:
        ValueError: the page has none, or one of another program.
    """
    (words,) = commands(OPERATIONS, "release a node", "numapin")
    return [f"--image={image}" if word.startswith("--image=") else word for word in words]


def commands(page: Path, section: str, program: str = "kubectl") -> list[list[str]]:
    """The arguments of each call of a program between the marks of a section.

    Raises:
        ValueError: the page has none, or one of another program.
    """
    marks = f"<!-- {section}: begin -->(.*)<!-- {section}: end -->"
    found = re.search(marks, page.read_text(), re.DOTALL)
    lines = re.findall(r"^\$ (.*)$", found[1], re.MULTILINE) if found else []
    if not lines or not all(one.startswith(f"{program} ") for one in lines):
        raise ValueError(f"{page} must have commands of {program} in {section}, and has {lines}")
    return [one.split()[1:] for one in lines]
