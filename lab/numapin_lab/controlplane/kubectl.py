"""Run kubectl."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numapin_lab.errors import LabError

COMMAND_SECONDS = 300


@dataclass(frozen=True)
class Kubectl:
    """The program, and the kubeconfig of its user."""

    program: Path
    kubeconfig: Path

    def __call__(self, *arguments: str, text: str | None = None) -> str:
        """Run one command with `text` on its standard input; returns its standard output.

        Raises:
            LabError: it failed; the message is its standard error.
        """
        answer = subprocess.run(
            [self.program, f"--kubeconfig={self.kubeconfig}", *arguments],
            input=text or "",
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
            check=False,
        )
        if answer.returncode != 0:
            command = " ".join(arguments)
            raise LabError(f"kubectl {command}: {answer.stderr.strip() or answer.stdout.strip()}")
        return answer.stdout

    def get(self, *arguments: str) -> Any:
        """`kubectl get ARGUMENTS -o json`, decoded."""
        return json.loads(self("get", *arguments, "-o", "json"))
