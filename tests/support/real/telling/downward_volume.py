"""The volume of docs/notice.md without a kubelet."""

import json
import shutil
from itertools import count
from pathlib import Path
from typing import Any

from numapin_api.cpuset import CpuSet


class DownwardVolume:
    """The volume without a kubelet: the file `cpus` is written as by its AtomicWriter.

    Source: Kubernetes v1.36, pkg/volume/util/atomic_writer.go, `AtomicWriter.Write`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self._numbers = folder, count()
        folder.mkdir()
        self.write("")
        self.file.symlink_to("..data/cpus")

    @property
    def file(self) -> Path:
        return self.folder / "cpus"

    def write(self, text: str) -> None:
        data, fresh = self.folder / "..data", self.folder / f"..2026_{next(self._numbers)}"
        before = data.resolve() if data.exists() else None
        fresh.mkdir()
        (fresh / "cpus").write_text(text)
        partial = self.folder / "..data_tmp"
        partial.symlink_to(fresh.name)
        partial.rename(data)
        if before is not None:
            shutil.rmtree(before)

    def announce(
        self, cpus: CpuSet, leaving: CpuSet | None = None, at: str | None = "2030-01-01T00:00:31Z"
    ) -> None:
        """What the operator writes of a container `main`; `at` is when `leaving` will leave."""
        said: dict[str, Any] = {"cpus": str(cpus), "numaNodes": "0"}
        if leaving is not None:
            said["leaving"] = {"cpus": str(leaving)} | ({"at": at} if at else {})
        self.write(json.dumps({"version": 1, "containers": {"main": said, "other": {}}}))
