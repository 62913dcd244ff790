"""A process with threads of io_uring in a cgroup, from a small C program."""

import os
import subprocess
from pathlib import Path
from typing import Self

SOURCE = Path(__file__).with_suffix(".c")


class IoThreads:
    """The process; `with` it, it has ended at the end."""

    def __init__(self, folder: Path, cgroup: Path) -> None:
        """Args: the program is built in `folder`; the process begins in the folder `cgroup`."""
        program, fifo = folder / "io_threads", folder / "fifo"
        if not program.exists():
            options = ("-O1", "-Wall", "-Werror", "-pthread", "-o", str(program), str(SOURCE))
            subprocess.run(("gcc", *options), check=True)
            os.mkfifo(fifo)
        start = 'read go; exec "$0" "$1"'
        self._process = subprocess.Popen(
            ["sh", "-c", start, str(program), str(fifo)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.pid = self._process.pid
        (cgroup / "cgroup.procs").write_text(str(self.pid))
        self._send("go")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()

    def do(self, command: str) -> None:
        """Have it do one of the things that the C program knows.

        Raises:
            OSError: the kernel refuses it, as where io_uring is disabled.
        """
        self._send(command)
        assert self._process.stdout is not None
        answer = self._process.stdout.readline().strip()
        if answer != "ok":
            raise OSError(f"{command}: {answer}")

    def worker(self) -> int:
        """One more worker; returns its id."""
        return self._made("worker", "iou-wrk-")

    def poller(self) -> int:
        """The polling thread of a new ring."""
        return self._made("sqpoll", "iou-sqp-")

    def _made(self, command: str, prefix: str) -> int:
        """What a command makes, once it waits: by then it has its name and its CPUs."""
        before = self.named(prefix)
        self.do(command)
        while not (made := self.named(prefix) - before):
            os.sched_yield()
        state = Path(f"/proc/{min(made)}/stat")
        while state.read_text().rpartition(") ")[2][0] != "S":
            os.sched_yield()
        return min(made)

    def named(self, prefix: str) -> set[int]:
        """The threads whose name begins like that."""
        names: dict[int, str] = {}
        for folder in Path(f"/proc/{self.pid}/task").iterdir():
            try:
                names[int(folder.name)] = (folder / "comm").read_text()
            except FileNotFoundError:  # it has ended
                continue
        return {thread for thread, name in names.items() if name.startswith(prefix)}

    def _send(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
