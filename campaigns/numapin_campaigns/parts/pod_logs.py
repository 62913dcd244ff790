"""What numapin's pods log, by the files that the kubelet writes."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from numapin_api.names import NAMESPACE
from numapin_campaigns.parts.logs import Line, parse


@dataclass
class KeptLogs:
    """The files of all containers of one part, open: the kubelet deletes those of older ones."""

    folder: Path
    part: str
    files: dict[tuple[str, int], IO[bytes]] = field(default_factory=dict)

    def look(self) -> None:
        """Open what is new."""
        pattern = f"{NAMESPACE}_numapin-{self.part}-*/{self.part}/*.log"
        for path in sorted(self.folder.glob(pattern)):
            with suppress(FileNotFoundError):
                file = path.open("rb")
                key = (str(path.parent), os.fstat(file.fileno()).st_ino)
                if key in self.files:
                    file.close()
                else:
                    self.files[key] = file

    def sizes(self) -> dict[tuple[str, int], int]:
        """How long each is."""
        return {key: os.fstat(file.fileno()).st_size for key, file in self.files.items()}

    def texts(self, since: Mapping[tuple[str, int], int]) -> Iterator[str]:
        """What was logged after each had this length, as text lines."""
        for key, file in list(self.files.items()):
            start = since.get(key, 0)
            found = os.pread(file.fileno(), os.fstat(file.fileno()).st_size - start, start)
            yield from plain(found.decode(errors="replace").splitlines())


def plain(lines: Iterable[str]) -> Iterator[str]:
    """Lines of the kubelet's log file of a container whose program writes JSON, as text lines.

    Source: Kubernetes, the CRI's log format: time, stream, P (partial) or F, text.
    """
    text = ""
    for line in lines:
        _, _, tag, part = (*line.split(" ", 3), "", "", "", "")[:4]
        text += part
        if tag == "P":
            continue
        yield from _plain(text)
        text = ""


def _plain(text: str) -> Iterator[str]:
    try:
        entry = json.loads(text)
        at, level, logger, said = (entry.pop(name) for name in ("time", "level", "logger", "text"))
    except (ValueError, AttributeError, KeyError):
        yield text
        return
    traceback = str(entry.pop("traceback", ""))
    fields = "".join(f" {name}={value}" for name, value in entry.items())
    yield f"{at} {str(level).upper()} {logger}: {said}{fields}"
    yield from traceback.splitlines()


@dataclass(frozen=True)
class PodLog:
    """What one part has logged since this was made."""

    kept: KeptLogs
    since: Mapping[tuple[str, int], int]

    def lines(self) -> Iterator[Line]:
        """In the order of time, over all containers."""
        self.kept.look()
        return iter(sorted(parse(self.kept.texts(self.since)), key=lambda line: line.at))
