"""The volume of the downward API with the annotation numapin.io/cpus."""

import json
import shutil
from itertools import count
from pathlib import Path
from typing import Any

from numapin_api import names
from numapin_api.cpuset import CpuSet

CPUS_FOLDER = "/etc/numapin"


def with_cpus_file(manifest: dict[str, Any]) -> dict[str, Any]:
    """A pod of one container, with the volume of docs/notice.md."""
    field = {"fieldPath": f"metadata.annotations['{names.CPUS_ANNOTATION}']"}
    source = {"downwardAPI": {"items": [{"path": "cpus", "fieldRef": field}]}}
    return with_volume(manifest, "cpus", source, CPUS_FOLDER)


def with_volume(
    manifest: dict[str, Any], name: str, source: dict[str, Any], path: str
) -> dict[str, Any]:
    """A pod of one container, with a volume at a path."""
    spec = manifest["spec"]
    (container,) = spec["containers"]
    mounts = [*container.get("volumeMounts", ()), {"name": name, "mountPath": path}]
    volumes = [*spec.get("volumes", ()), {"name": name} | source]
    mounted = [container | {"volumeMounts": mounts}]
    return manifest | {"spec": spec | {"containers": mounted, "volumes": volumes}}


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
