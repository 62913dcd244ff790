"""Run commands in a virtual machine that stays up: a shell at the end of each of two serial lines.

One command runs at a time; a second connection waits until the first has its answer. A command
takes 0.1 to 1 s in an emulated machine, so group related commands in one script.
"""

import base64
import re
import secrets
import socket
import time
from dataclasses import dataclass
from pathlib import Path

COMMAND_SECONDS = 300.0
NUDGE_SECONDS = 5.0
"""How long to wait for more of an answer before an empty line is sent.

The emulated serial line loses an interrupt now and then; then neither side gets anything before the
next character arrives. The shell skips an empty line.
"""
LINE, PULSE_LINE = "ttyS1", "ttyS2"

# Process 1 adopts orphans, and the machine stops when it exits. Its child reads the line: `read` of
# busybox 1.35 loses what it has of a line when a child ends, an orphan included.
SHELL = f"""#!/bin/sh
if [ $$ = 1 ]; then
  export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8
  mount --make-rshared /
  ulimit -n 65536
  for line in {LINE} {PULSE_LINE}; do stty -F /dev/$line raw -echo; done
  while :; do "$0" {PULSE_LINE}; sleep 1; done &
  while :; do "$0" {LINE}; sleep 1; done
fi
exec <"/dev/$1" >"/dev/$1" 2>/dev/console
while :; do
  IFS=' ' read -r name script || {{ sleep 1; continue; }}
  [ "$script" ] || continue
  echo "$script" | base64 -d >"/run/script-$1" || continue
  sh "/run/script-$1" </dev/null >"/run/output-$1" 2>&1
  status=$?
  echo "$name begins"; cat "/run/output-$1"; echo; echo "$name ended $status"
done
"""


@dataclass(frozen=True)
class Answer:
    """Exit status of a command, and what it printed on both streams."""

    status: int
    output: str


@dataclass(frozen=True)
class GuestShell:
    """The host's end of the serial line."""

    socket: Path

    def run(self, script: str, timeout_seconds: float = COMMAND_SECONDS) -> Answer:
        """Run a shell script in the guest, as root.

        Raises:
            TimeoutError: the script did not end in time.
            OSError: no machine is connected, or it stopped.
        """
        name = secrets.token_hex(8)
        line = f"\n{name} {base64.b64encode(script.encode()).decode()}\n"
        ended = re.compile(rf"{name} begins\n(.*)\n{name} ended (\d+)\n".encode(), re.DOTALL)
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(timeout_seconds)
            connection.connect(str(self.socket))
            connection.sendall(line.encode())
            found = ended.search(_received(connection, f"{name} ended ".encode(), timeout_seconds))
        assert found is not None
        return Answer(int(found[2]), found[1].decode(errors="replace"))

    def answers(self, timeout_seconds: float) -> bool:
        """Whether the guest runs a script and answers in time."""
        try:
            return self.run("true", timeout_seconds).status == 0
        except OSError:
            return False


def _received(connection: socket.socket, marker: bytes, timeout_seconds: float) -> bytes:
    """Everything received up to the end of the line that contains `marker`."""
    deadline, content = time.monotonic() + timeout_seconds, b""
    while marker not in content or not content.endswith(b"\n"):
        left = max(0.01, deadline - time.monotonic())
        connection.settimeout(min(left, NUDGE_SECONDS))
        try:
            piece = connection.recv(65536)
        except TimeoutError:
            if left <= NUDGE_SECONDS:
                raise
            connection.sendall(b"\n")
            continue
        if not piece:
            raise ConnectionResetError("the guest ended")
        content += piece
    return content
