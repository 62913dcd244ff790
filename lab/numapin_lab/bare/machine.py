"""Makes a machine in a folder, runs commands in it, and removes it."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from numapin_lab.bare.commands import (
    CACHE,
    CLONE,
    GO_SETTINGS,
    NAMESPACES,
    SYSTEM_PATH,
    Go,
    debootstrap_command,
    inside,
    machine_environment,
    named_paths,
    passed_settings,
)
from numapin_lab.bare.options import DEBOOTSTRAP_REMEDY, RELEASE, Options
from numapin_lab.errors import LabError, MissingError
from numapin_lab.node import mounts

REPOSITORY: Final = Path(__file__).resolve().parents[3]
HOSTS: Final = "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n127.0.1.1 {name}\n"
GO_REMEDY: Final = "see https://go.dev/doc/install"
INTERRUPTED: Final = 130

LOOK_SECONDS: Final = 0.5
"""How late a signal can be handled at worst."""


@dataclass(frozen=True)
class Progress:
    """Lines that say what is done, with the time since the beginning."""

    clock: Callable[[], float] = time.monotonic
    began: float = field(default_factory=time.monotonic)

    def __call__(self, text: str) -> None:
        """Print one."""
        minutes, seconds = divmod(int(self.clock() - self.began), 60)
        print(f"bare-machine: {minutes:3}:{seconds:02} {text}", file=sys.stderr, flush=True)


class FailedError(Exception):
    """A command failed, or was interrupted."""

    def __init__(self, what: str, status: int) -> None:
        super().__init__(f"{what} ended with {status}")
        self.status = status


def find_go() -> Go:
    """The machine's Go.

    Raises:
        MissingError: there is none.
    """
    if shutil.which("go") is None:
        raise MissingError("the lab's components are built with Go, and there is none", GO_REMEDY)
    answer = subprocess.run(
        ["go", "env", "-json", "GOROOT", *GO_SETTINGS],
        cwd="/",
        capture_output=True,
        text=True,
        check=True,
        stdin=subprocess.DEVNULL,
    )
    found: dict[str, str] = json.loads(answer.stdout)
    root = Path(found.pop("GOROOT"))
    return Go(root, {name: value for name, value in found.items() if value})


def check() -> None:
    """Make sure that a machine can be made.

    Raises:
        MissingError: it cannot; the message names the remedy.
    """
    if os.geteuid() != 0:
        raise MissingError("root is needed: a file system is made and mounted", "sudo")
    if shutil.which("debootstrap", path=f"{os.environ.get('PATH', '')}:{SYSTEM_PATH}") is None:
        raise MissingError("debootstrap makes the machine's files", DEBOOTSTRAP_REMEDY)


@dataclass(frozen=True)
class BareMachine:
    """A new Debian in `root`, and how its commands are run."""

    root: Path
    options: Options
    go: Go
    tell: Progress

    def make(self) -> None:
        """Make its files, and clone HEAD into it.

        Raises:
            FailedError: debootstrap or git failed.
        """
        if self.options.cache:
            (self.options.cache / "debian").mkdir(parents=True, exist_ok=True)
        self.root.mkdir(mode=0o755)
        command = debootstrap_command(self.root, self.options)
        self._step(f"debootstrap {RELEASE}", [*NAMESPACES, *command], dict(os.environ))
        (self.root / "etc/hosts").write_text(HOSTS.format(name=os.uname().nodename))
        for file in named_paths(self._settings)[0]:
            target = self.root / str(file).lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)
        self._clone()

    def run(self) -> None:
        """Run the targets and the command.

        Raises:
            FailedError: one failed; the rest is not run.
        """
        for target in self.options.targets:
            self._step(f"make {target}", self._inside(("make", target)), self._environment)
        if command := self.options.command:
            environment = self._environment
            environment["PATH"] = f"{CLONE}/.venv/bin:{environment['PATH']}"
            self._step(" ".join(command), self._inside(command), environment)

    def _clone(self) -> None:
        answer = subprocess.run(
            ["git", "-C", str(REPOSITORY), "rev-parse", "HEAD"],
            capture_output=True,
            text=True,
            check=True,
        )
        clone, commit = str(self.root / CLONE.lstrip("/")), answer.stdout.strip()
        environment = dict(os.environ)
        clones = ["git", "clone", "--quiet", "--no-checkout", str(REPOSITORY), clone]
        self._step(f"clone of {commit[:12]}", clones, environment)
        checkout = ["git", "-C", clone, "checkout", "--quiet", "--detach", commit]
        self._step("its checkout", checkout, environment)

    @property
    def _settings(self) -> dict[str, str]:
        return passed_settings(os.environ, self.go)

    @property
    def _environment(self) -> dict[str, str]:
        cached = self.options.cache is not None
        return machine_environment(self._settings, self.go, cached=cached)

    def _inside(self, command: Sequence[str]) -> list[str]:
        folders = (self.go.root, *named_paths(self._settings)[1])
        bound = {str(folder): ("ro", folder) for folder in folders}
        if self.options.cache:
            bound[CACHE] = ("rw", self.options.cache)
        return inside(self.root, bound, command)

    def _step(self, what: str, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self.tell(what)
        status = run_until_its_end(command, environment)
        if status != 0:
            raise FailedError(what, status)


def run_until_its_end(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run a command in a process group of its own; returns its exit status.

    SIGINT and SIGTERM interrupt the command, which takes down what it started; a second one ends
    it at once.
    """
    process: subprocess.Popen[bytes] | None = None
    signals = [signal.SIGINT]

    def interrupt(*_: object) -> None:
        if process is not None:
            os.killpg(process.pid, signals[-1])
        signals.append(signal.SIGKILL)

    # Before the command starts: it must not be left behind, nor inherit that SIGINT is ignored.
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, interrupt) for number in numbers]
    try:
        process = subprocess.Popen(
            command, env=dict(environment), stdin=subprocess.DEVNULL, start_new_session=True
        )
        if len(signals) > 1:
            os.killpg(process.pid, signal.SIGINT)
        status = _wait(process)
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
    return INTERRUPTED if len(signals) > 1 else status if status >= 0 else 128 - status


def _wait(process: subprocess.Popen[bytes]) -> int:
    """Wait for a process; returns its status.

    Python handles a signal that comes right before a system call only when that call returns, so
    no call may wait until the process ends.
    """
    while True:
        with suppress(subprocess.TimeoutExpired):
            return process.wait(timeout=LOOK_SECONDS)


def remove(folder: Path) -> None:
    """Remove a machine's folder.

    Raises:
        LabError: something is mounted in it, and might be removed with it.
    """
    if mounted := mounts.below(mounts.MOUNTS.read_text(), (folder,)):
        raise LabError(f"{folder} is not removed, it has mounts: {', '.join(map(str, mounted))}")
    shutil.rmtree(folder)
