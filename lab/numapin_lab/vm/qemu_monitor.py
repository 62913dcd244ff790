"""QEMU's monitor: stop, save, load and resume a virtual machine.

Source: QEMU, docs/interop/qmp-spec.rst: one JSON object a line.
"""

import json
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numapin_lab.errors import LabError

ANSWER_SECONDS = 240.0


@dataclass(frozen=True)
class Monitor:
    """The monitor of a running QEMU process, by its socket."""

    socket: Path
    answer_seconds: float = ANSWER_SECONDS

    def __call__(self, command: str, **arguments: Any) -> Any:
        """Execute one command; returns what it returns.

        Raises:
            LabError: QEMU refused the command; the message is QEMU's.
            OSError: QEMU does not listen, or it ended.
        """
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(self.answer_seconds)
            connection.connect(str(self.socket))
            with connection.makefile("r", encoding="utf-8") as lines:
                answers = _answers(lines)
                for each, given in (("qmp_capabilities", {}), (command, arguments)):
                    request = {"execute": each, "arguments": given}
                    connection.sendall(json.dumps(request).encode() + b"\n")
                    answer = next(answers, {"error": {"desc": "the emulator ended"}})
        if "error" in answer:
            raise LabError(f"QEMU does not {command}: {answer['error']['desc']}")
        return answer["return"]

    @property
    def state(self) -> str:
        """`running`, `paused`, `inmigrate` while a snapshot is loaded, ..."""
        return str(self("query-status")["status"])


def _answers(lines: Iterator[str]) -> Iterator[dict[str, Any]]:
    """The lines that are answers: neither the greeting nor events."""
    for line in lines:
        found: dict[str, Any] = json.loads(line)
        if "return" in found or "error" in found:
            yield found
