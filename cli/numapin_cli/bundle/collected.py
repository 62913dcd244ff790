"""What has been collected for a report: files, and what could not be collected and why.

Does no I/O.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from numapin_cli.bundle.reduced import LEFT_OUT

OBJECTS: Final = "objects.json"
"""The file of a report that `--cluster` reads."""

README: Final = "README.txt"


@dataclass
class Collected:
    """The content of a report.

    Attributes:
        files: the content of each file by its name.
        about: what each file has, in one line.
        problems: what could not be collected, and why.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    about: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def add(self, name: str, content: bytes | str, about: str = "") -> None:
        """Add a file."""
        self.files[name] = content.encode() if isinstance(content, str) else content
        if about:
            self.about[name] = about

    def add_json(self, name: str, content: Any, about: str) -> None:
        """Add a file of JSON."""
        self.add(name, json.dumps(content, indent=2, sort_keys=True) + "\n", about)

    def add_objects(self, objects: Iterable[dict[str, Any]], about: str) -> None:
        """Add the objects, one on each line."""
        lines = ",\n".join(json.dumps(one, separators=(",", ":")) for one in objects)
        listed = f'{{"apiVersion":"v1","kind":"List","items":[\n{lines}\n]}}\n'
        self.add(OBJECTS, listed, about)

    def readme(self, version: str, when: str) -> str:
        """What the report has, what it has not, and what to look at before it is published."""
        return "\n".join(
            [
                f"Report of numapin {version}, made {when}.",
                "",
                "It has:",
                *(f"  {name}: {text}" for name, text in sorted(self.about.items())),
                "",
                "Left out on purpose:",
                *(f"  - {text}" for text in LEFT_OUT),
                "",
                "Names and labels of Nodes, Namespaces and pods are in it, and lines of numapin's",
                "logs. Look at them before you publish it.",
                "",
                "Could not be collected:" if self.problems else "Everything was collected.",
                *(f"  - {text}" for text in self.problems),
                "",
                "numapin plan, explain and get read it: numapin explain POD --cluster THIS-FILE",
                "",
            ]
        )
