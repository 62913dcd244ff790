"""The folder in which the enforcer keeps its assignment, where it can be full or read-only."""

import errno
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from numapin_lab.errors import LabError
from numapin_lab.node.mount_namespace import run_command
from numapin_lab.processes.daemons import stop
from numapin_lab.running_lab import RunningLab

OPTIONS: Final = "size=512k,mode=0700"
STOP_SECONDS: Final = 10.0

_FILLER: Final = "filler"
_BLOCK: Final = b"\0" * 4096


@dataclass(frozen=True)
class Place:
    """Where the enforcer sees the folder.

    Attributes:
        path: in its mount namespace.
        pid: the enforcer, if it has a mount namespace of its own, which ends with it.
    """

    path: str
    pid: int | None = None

    def run(self, *command: str) -> None:
        """Run a command there.

        Raises:
            LabError: it failed, and the process still runs.
        """
        inside = () if self.pid is None else ("nsenter", f"--target={self.pid}", "--mount", "--")
        try:
            run_command(*inside, *command)
        except LabError:
            if self._exists():
                raise

    def _exists(self) -> bool:
        if self.pid is None:
            return True
        try:
            Path(f"/proc/{self.pid}/ns/mnt").readlink()
        except OSError:
            return False
        return True


class StateFolder:
    """A small file system of its own on the folder, so that it can be full or read-only.

    Args:
        folder: where this process finds it.
        find: where the enforcer that runs now sees it; in `folder` by default.
    """

    def __init__(self, folder: Path, find: Callable[[], Place] | None = None) -> None:
        self._folder = folder
        self._find = find or (lambda: Place(str(folder)))

    @contextmanager
    def full(self) -> Iterator[None]:
        """No block of the file system is free meanwhile."""
        filler = self._folder / _FILLER
        try:
            with filler.open("wb", buffering=0) as file:
                _fill(file.write)
            yield
        finally:
            filler.unlink(missing_ok=True)

    @contextmanager
    def read_only(self) -> Iterator[None]:
        """Files opened from now on cannot be written meanwhile.

        The folder is mounted once more, read-only: the kernel refuses to make a mount read-only
        while a file of it is open for writing, and the lock is. A container that is started
        meanwhile can write: it has mounts of its own.
        """
        place = self._find()
        place.run("mount", "--bind", place.path, place.path)
        try:
            place.run("mount", "-o", "remount,bind,ro", place.path)
            yield
        finally:
            place.run("umount", "--lazy", place.path)


def _fill(write: Callable[[bytes], object]) -> None:
    while True:
        try:
            write(_BLOCK)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            return


@contextmanager
def own_file_system(lab: RunningLab) -> Iterator[StateFolder]:
    """Give the enforcer's folder a file system of its own meanwhile, with the same content."""
    folder = lab.agent("enforcer").folder / "state"
    with _enforcer_away(lab), content_kept(folder):
        run_command("mount", "-t", "tmpfs", "-o", OPTIONS, "numapin-lab", str(folder))
    try:
        yield StateFolder(folder)
    finally:
        with _enforcer_away(lab), content_kept(folder):
            run_command("umount", "--lazy", str(folder))


@contextmanager
def _enforcer_away(lab: RunningLab) -> Iterator[None]:
    """End enforcer and standby, and start them again afterwards."""
    standby = lab.cluster.standby
    for daemon in (standby, lab.agent("enforcer").daemon):
        if (pid := daemon.pid()) is not None:
            stop(pid, STOP_SECONDS)
    yield
    lab.restart("enforcer")
    standby.start()


@contextmanager
def content_kept(folder: Path) -> Iterator[None]:
    """Whatever is mounted or unmounted in here, the folder has the same files afterwards."""
    aside = folder.with_name(f"{folder.name}-aside")
    shutil.copytree(folder, aside)
    yield
    shutil.copytree(aside, folder, dirs_exist_ok=True)
    shutil.rmtree(aside)
