"""The watch on the two upper levels of cgroups, without a kernel."""

import os
from typing import Self


class NewPods:
    """Readable while pods are reported."""

    def __init__(self) -> None:
        self._descriptor = os.eventfd(0, os.EFD_NONBLOCK)
        self._paths: list[str] = []
        self.problem = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)

    def fileno(self) -> int:
        return self._descriptor

    def report(self, path: str) -> None:
        self._paths.append(path)
        os.eventfd_write(self._descriptor, 1)

    def take(self) -> tuple[str, ...]:
        paths, self._paths = tuple(self._paths), []
        if paths:
            os.eventfd_read(self._descriptor)
        return paths

    def close(self) -> None:
        """It is opened again with the tree."""
