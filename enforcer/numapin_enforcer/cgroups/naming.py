"""The paths of the kubelet's cgroups, and the pods and containers that they name.

Does no I/O.
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Final

from numapin_enforcer.cgroups.tree import contains

_POD_UID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,63}", re.ASCII)
_ROOT_PART: Final = re.compile(r"[A-Za-z0-9.-]*[A-Za-z0-9-][A-Za-z0-9.-]*", re.ASCII)
_CGROUPFS_POD: Final = re.compile(r"pod([A-Za-z0-9][A-Za-z0-9-]{0,63})", re.ASCII)
_SYSTEMD_POD: Final = re.compile(r"pod([A-Za-z0-9][A-Za-z0-9_]{0,63})", re.ASCII)
_LITERAL: Final = re.compile(r"[^/:]*kubepods[^/:]*\.slice:[^/:]+:[0-9a-f]{64}", re.ASCII)
_KUBEPODS_SLICE: Final = re.compile(r"(?:.*-)?kubepods(?:-.*)?\.slice", re.ASCII)
_SCOPES: Final = ("cri-containerd", "crio", "docker")
"""With what the names of the scopes of containers begin, by runtime."""
_CGROUPFS_CONTAINER: Final = re.compile(r"(?:crio-)?([0-9a-f]{64})", re.ASCII)
# The last is a sandbox without processes: CRI-O creates its cgroup itself, without systemd.
# Source: CRI-O internal/config/cgmgr/systemd_linux.go, `CreateSandboxCgroup`.
_SYSTEMD_CONTAINER: Final = re.compile(
    rf"(?:{'|'.join(_SCOPES)})-([0-9a-f]{{64}})\.scope|crio-([0-9a-f]{{64}})", re.ASCII
)
_SLICE: Final = ".slice"

MOST_PARSED: Final = 8192
"""How many paths are remembered with what they name; a full node has some 2,000."""


class Driver(StrEnum):
    """The kubelet's cgroup driver, which decides the names of cgroups."""

    CGROUPFS = "cgroupfs"
    SYSTEMD = "systemd"


class Qos(StrEnum):
    """A pod's quality of service class."""

    GUARANTEED = "Guaranteed"
    BURSTABLE = "Burstable"
    BEST_EFFORT = "BestEffort"


class Kind(StrEnum):
    """What a cgroup of the tree is."""

    ROOT = "Root"
    QOS = "Qos"
    POD = "Pod"
    CONTAINER = "Container"
    """A container or a pod's sandbox: the path does not say which."""
    NESTED = "Nested"
    """A descendant of a container or of an unknown cgroup, and part of it."""
    OTHER = "Other"
    """A name that neither the kubelet nor a runtime gives; it gets the shared pool."""


@dataclass(frozen=True, slots=True)
class CgroupName:
    """The pod and container that a cgroup path names; empty if it names none."""

    kind: Kind
    qos: Qos = Qos.GUARANTEED
    pod_uid: str = ""
    container_id: str = ""


class InvalidIdError(ValueError):
    """A name that is not valid in a cgroup path."""

    def __init__(self, what: str, text: str, rule: str) -> None:
        super().__init__(f"{text!r} cannot be {what}: {rule}")
        self.what, self.text = what, text


@dataclass(frozen=True)
class CgroupNaming:
    """How the kubelet names cgroups, by its cgroup driver and its `cgroupRoot`.

    Paths are relative to the mount of a cgroup controller, without a leading `/`.
    Source: kubelet pkg/kubelet/cm, `CgroupName.ToSystemd` and `ToCgroupfs`.

    Raises:
        InvalidIdError: a part of `cgroup_root` is not valid in a cgroup name of the kubelet.
    """

    driver: Driver
    cgroup_root: str = "/"

    def __post_init__(self) -> None:
        for part in self._root_parts:
            if not _ROOT_PART.fullmatch(part):
                rule = "each part between '/' is letters, digits, '-' and '.', and not only dots"
                raise InvalidIdError("the cgroup root", self.cgroup_root, rule)

    @property
    def _root_parts(self) -> tuple[str, ...]:
        return tuple(part for part in self.cgroup_root.strip("/").split("/") if part)

    @cached_property
    def root(self) -> str:
        """The cgroup that holds all pods, e.g. `kubepods` or `kubepods.slice`."""
        return self._path("kubepods")

    def qos_path(self, qos: Qos) -> str:
        """The parent of the pods of one class; for Guaranteed pods, that is `root` itself."""
        return self.root if qos is Qos.GUARANTEED else self._path("kubepods", qos.lower())

    def pod_path(self, qos: Qos, pod_uid: str) -> str:
        """The cgroup of one pod.

        Raises:
            InvalidIdError: `pod_uid` has other characters than letters, digits and `-`.
        """
        if not _POD_UID.fullmatch(pod_uid):
            raise InvalidIdError("a pod's UID", pod_uid, "only letters, digits and '-', at most 64")
        between = () if qos is Qos.GUARANTEED else (qos.lower(),)
        return self._path("kubepods", *between, f"pod{pod_uid}")

    def container_paths(self, pod: str, container_id: str) -> tuple[str, ...]:
        """Where the cgroup of a pod's container can be, by its runtime."""
        if self.driver is Driver.CGROUPFS:
            names: tuple[str, ...] = (container_id, f"crio-{container_id}")
        else:
            names = tuple(f"{one}-{container_id}.scope" for one in _SCOPES)
        return tuple(f"{pod}/{name}" for name in names)

    def parse(self, path: str) -> CgroupName:
        """What the cgroup at `path` is.

        Raises:
            InvalidIdError: `path` is not in the tree, or has `.`, `..` or empty parts.
        """
        found = self._parsed.get(path)
        if found is None:
            if len(self._parsed) >= MOST_PARSED:
                self._parsed.clear()
            found = self._parsed[path] = self._parse(path)
        return found

    def parse_child(self, parent: CgroupName, name: str) -> CgroupName:
        """What the child `name` of the cgroup `parent` is."""
        if parent.kind in {Kind.CONTAINER, Kind.OTHER, Kind.NESTED}:
            return CgroupName(Kind.NESTED, parent.qos, parent.pod_uid, parent.container_id)
        if parent.kind is Kind.POD:
            container_id = self._container_id(name)
            kind = Kind.CONTAINER if container_id else Kind.OTHER
            return CgroupName(kind, parent.qos, parent.pod_uid, container_id)
        if parent.kind is Kind.ROOT and name in self._qos_names:
            return CgroupName(Kind.QOS, self._qos_names[name])
        pod_uid = self._pod_uid(name, parent.qos)
        return CgroupName(Kind.POD if pod_uid else Kind.OTHER, parent.qos, pod_uid)

    @cached_property
    def _parsed(self) -> dict[str, CgroupName]:
        """Answers of `parse`; every pass parses every path several times."""
        return {}

    def _parse(self, path: str) -> CgroupName:
        if path == self.root:
            return CgroupName(Kind.ROOT)
        parent, _, name = path.rpartition("/")
        if name in {"", ".", ".."} or not contains(self.root, path):
            raise InvalidIdError("a cgroup", path, f"it is not below {self.root}")
        return self.parse_child(self.parse(parent), name)

    @cached_property
    def _qos_names(self) -> dict[str, Qos]:
        classes = (Qos.BURSTABLE, Qos.BEST_EFFORT)
        return {self.qos_path(qos).rpartition("/")[2]: qos for qos in classes}

    def _pod_uid(self, name: str, qos: Qos) -> str:
        """The UID in the name of a pod's cgroup, or an empty string."""
        if self.driver is Driver.CGROUPFS:
            found = _CGROUPFS_POD.fullmatch(name)
            return found[1] if found else ""
        prefix = self.qos_path(qos).rpartition("/")[2].removesuffix(_SLICE) + "-"
        if not (name.startswith(prefix) and name.endswith(_SLICE)):
            return ""
        found = _SYSTEMD_POD.fullmatch(name.removeprefix(prefix).removesuffix(_SLICE))
        return found[1].replace("_", "-") if found else ""

    def _container_id(self, name: str) -> str:
        """The id in the name of a container's or sandbox's cgroup, or an empty string."""
        pattern = _CGROUPFS_CONTAINER if self.driver is Driver.CGROUPFS else _SYSTEMD_CONTAINER
        found = pattern.fullmatch(name)
        return found[found.lastindex or 0] if found else ""

    def _path(self, *names: str) -> str:
        parts = (*self._root_parts, *names)
        if self.driver is Driver.CGROUPFS:
            return "/".join(parts)
        escaped = [part.replace("-", "_") for part in parts]
        slices = ("-".join(escaped[: count + 1]) for count in range(len(escaped)))
        return "/".join(name + _SLICE for name in slices)


def kubelet_of(kubepods: str) -> Driver:
    """The kubelet's cgroup driver, by the root of its tree."""
    return Driver.SYSTEMD if kubepods.endswith(_SLICE) else Driver.CGROUPFS


def is_literal(path: str) -> bool:
    """Whether a runtime with the driver cgroupfs made it when asked for systemd's form."""
    return _LITERAL.fullmatch(path.rpartition("/")[2]) is not None


def other_driver(path: str, kubepods: str) -> Driver | None:
    """The runtime's cgroup driver if a pod's container shows that it is not the kubelet's.

    Asked for `kubepods-podUID.slice:cri-containerd:ID`, a runtime with the driver cgroupfs makes a
    cgroup of that very name. Else the container is in a tree that the other driver names.
    Source: runc, libcontainer/cgroups, `Config.Name` of `fs` and `systemd`.

    Args:
        path: the container's cgroup, outside of the kubelet's tree.
        kubepods: the root of the kubelet's tree.
    """
    if is_literal(path):
        return Driver.CGROUPFS
    names = path.split("/")
    if kubelet_of(kubepods) is Driver.SYSTEMD:
        return Driver.CGROUPFS if "kubepods" in names[:-1] else None
    has_slices = any(_KUBEPODS_SLICE.fullmatch(name) for name in names[:-1])
    return Driver.SYSTEMD if has_slices else None
