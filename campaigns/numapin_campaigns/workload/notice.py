"""Whether a workload sees by its file which CPUs will leave it before they do.

The file is that of docs/notice.md.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from numapin_api import names
from numapin_api.cpuset import CpuSet
from numapin_lab.node.agents import Agent
from numapin_lab.running_lab import RunningLab

CPUS_FOLDER: Final = "/etc/numapin"
"""Where the file `cpus` is in the container."""

COMPONENT: Final = Path(__file__).parents[3] / "manifests" / "components" / "cpu-annotation"
ANNOTATING: Final = tuple(
    f"--filename={COMPONENT / name}" for name in ("rbac.yaml", "admission.yaml")
)


class Departure(NamedTuple):
    """CPUs that left a container. Times are seconds of its monotonic clock.

    `announced_at`: when the container saw by the file that all of them will leave; None if it did
    not before.
    """

    cpus: CpuSet
    announced_at: float | None
    left_at: float

    @property
    def notice_seconds(self) -> float:
        """How long the container knew it before; 0 if it did not."""
        return 0.0 if self.announced_at is None else self.left_at - self.announced_at


class Reading(NamedTuple):
    """CPUs that a workload saw from `at` on (seconds of its monotonic clock)."""

    at: float
    cpus: CpuSet


@dataclass(frozen=True)
class Followed:
    """What a workload has written down.

    `had`: the CPUs that the kernel let it use, each time that they changed. `shared`: those of them
    that another container could use at the same time, each time that it saw some. `asked`: how
    often it asked for its CPUs.
    """

    departures: tuple[Departure, ...]
    had: tuple[Reading, ...] = ()
    shared: tuple[Reading, ...] = ()
    asked: int = 0
    longest_gap_seconds: float = 0.0


def parse_followed(lines: Iterable[str], container: str = "main") -> Followed:
    """Parse what `workload` has printed; a line that is not whole is left out."""
    found: list[Departure] = []
    had: list[Reading] = []
    shared: list[Reading] = []
    announced: dict[int, float] = {}
    has, asked = CpuSet(), (0, 0.0)
    for line in lines:
        if not line.endswith("\n"):
            continue
        at, what, said = json.loads(line)
        if what == "file":
            leaving, own = leaving_in(said, container), cpus_in(said, container)
            # The file can say that they are gone before the kernel has taken them away.
            gone = {cpu: since for cpu, since in announced.items() if cpu not in own}
            announced = gone | {cpu: announced.get(cpu, at) for cpu in leaving}
        elif what == "cpus":
            had.append(Reading(at, CpuSet(said)))
            if lost := has - (has := CpuSet(said)):
                seen = [announced[cpu] for cpu in lost if cpu in announced]
                found.append(Departure(lost, max(seen) if len(seen) == len(lost) else None, at))
        elif what == "shared":
            shared += [Reading(at, CpuSet(said))] if said else []
        else:
            asked = (said[0], said[1])
    return Followed(tuple(found), tuple(had), tuple(shared), *asked)


def leaving_in(text: str, container: str = "main") -> CpuSet:
    """The CPUs that will leave a container, by the text of its file."""
    return CpuSet.parse(_container_in(text, container).get("leaving", {}).get("cpus", ""))


def leaves_at(text: str, container: str = "main") -> str:
    """When CPUs will leave a container, by the text of its file; empty until that is known."""
    return str(_container_in(text, container).get("leaving", {}).get("at", ""))


def cpus_in(text: str, container: str = "main") -> CpuSet:
    """The CPUs of a container, by the text of its file."""
    return CpuSet.parse(_container_in(text, container).get("cpus", ""))


def _container_in(text: str, container: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads(text)["containers"].get(container, {}) if text else {}
    return found


def with_cpus_file(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """A pod of one container, with the volume of docs/notice.md."""
    field = {"fieldPath": f"metadata.annotations['{names.CPUS_ANNOTATION}']"}
    source = {"downwardAPI": {"items": [{"path": "cpus", "fieldRef": field}]}}
    return with_volume(manifest, "cpus", source, CPUS_FOLDER)


def with_volume(
    manifest: Mapping[str, Any], name: str, source: Mapping[str, Any], path: str
) -> dict[str, Any]:
    """A pod of one container, with a volume at a path."""
    spec = manifest["spec"]
    (container,) = spec["containers"]
    mounts = [*container.get("volumeMounts", ()), {"name": name, "mountPath": path}]
    volumes = [*spec.get("volumes", ()), {"name": name, **source}]
    mounted = [container | {"volumeMounts": mounts}]
    return {**manifest, "spec": spec | {"containers": mounted, "volumes": volumes}}


@contextmanager
def annotating(lab: RunningLab) -> Iterator[Agent]:
    """Have the lab's operator annotate pods meanwhile; yields that operator."""
    try:
        yield start_annotating(lab)
    finally:
        lab.agent("operator").stop()
        lab.restart("operator")
        lab.kubectl("delete", *ANNOTATING)


def start_annotating(lab: RunningLab) -> Agent:
    """Have the lab's operator annotate pods, with the right to do so; returns that operator."""
    lab.kubectl("apply", *ANNOTATING)
    usual = lab.agent("operator")
    usual.stop()
    other = replace(usual, options=(*usual.options, "--annotate-pods"))
    other.start()
    other.wait_ready()
    return other
