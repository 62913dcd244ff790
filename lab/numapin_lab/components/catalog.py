"""The components of a cluster, and where each of them is found.

Order of search: the folder in KUBEBUILDER_ASSETS (any version, because the user has named it), PATH
(only a version that works with the others), the cache. Others are built from go.mod by `build.py`.
"""

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from numapin_lab.errors import LabError

Version = tuple[int, int, int]

LAB_MODULE = Path(__file__).resolve().parents[2]
CONTAINERD_MODULE = LAB_MODULE / "containerd"
HELM_MODULE = LAB_MODULE / "helm"
DRA_MODULE = LAB_MODULE / "dra-driver-cpu"
KREW_MODULE = LAB_MODULE / "krew"
PUBLISHING_MODULE = LAB_MODULE / "publishing"
KUBE_SCORE_MODULE = LAB_MODULE / "kube-score"
KUBE_ROUTER_MODULE = LAB_MODULE / "kube-router"
SCHEDULER_MODULE = LAB_MODULE / "scheduler-plugins"
COLLECTOR_MODULE = LAB_MODULE / "collector"
NFD_MODULE = LAB_MODULE / "node-feature-discovery"
OTHER_KUBERNETES = LAB_MODULE / "kubernetes"
"""Has a module for each release that can be chosen instead of the lab's own."""

KUBERNETES_VARIABLE = "NUMAPIN_LAB_KUBERNETES"
CHOSEN_KUBERNETES = os.environ.get(KUBERNETES_VARIABLE, "")
KUBERNETES_MODULE = OTHER_KUBERNETES / CHOSEN_KUBERNETES if CHOSEN_KUBERNETES else LAB_MODULE
VERSION_SECONDS = 120


@dataclass(frozen=True)
class Component:
    """One program.

    `module` is the folder of the go.mod that pins it, `package` what to build there, `release` the
    required module that carries its version. `same_series` requires the pinned major.minor (the
    parts of one Kubernetes release are only tested with each other); otherwise any version from
    `floor` on is accepted.
    """

    name: str
    module: Path
    package: str
    release: str
    version_flag: str = "--version"
    same_series: bool = False
    floor: Version = (0, 0, 0)

    def pinned(self) -> Version:
        """The version in go.mod."""
        text = (self.module / "go.mod").read_text()
        found = re.search(rf"^\s+{re.escape(self.release)} v(\S+)", text, re.MULTILINE)
        version = parse_version(found[1]) if found else None
        if version is None:
            raise ValueError(f"{self.module}/go.mod requires no released {self.release}")
        return version

    def accepts(self, version: Version) -> bool:
        """Whether a copy of this version works with the other components."""
        return version[:2] == self.pinned()[:2] if self.same_series else version >= self.floor

    def wanted(self) -> str:
        """The versions that `accepts` accepts, in words."""
        if self.same_series:
            return "{}.{}".format(*self.pinned())
        return "{}.{} or newer".format(*self.floor)


@dataclass(frozen=True)
class Found:
    """Where a component was found; `origin` is shown to the user."""

    component: Component
    path: Path
    origin: str


def _kubernetes(name: str, version_flag: str = "--version") -> Component:
    package = f"k8s.io/kubernetes/cmd/{name}"
    release = "k8s.io/kubernetes"
    return Component(name, KUBERNETES_MODULE, package, release, version_flag, same_series=True)


def _containerd(name: str, version_flag: str = "--version") -> Component:
    release = "github.com/containerd/containerd/v2"
    package = f"{release}/cmd/{name}"
    return Component(name, CONTAINERD_MODULE, package, release, version_flag, floor=(2, 0, 0))


ETCD = Component(
    "etcd",
    LAB_MODULE,
    "go.etcd.io/etcd/server/v3",
    "go.etcd.io/etcd/server/v3",
    floor=(3, 5, 0),
)
HELM = Component(
    "helm",
    HELM_MODULE,
    "helm.sh/helm/v4/cmd/helm",
    "helm.sh/helm/v4",
    "version --short",
    floor=(4, 0, 0),
)
DRA_DRIVER = Component(
    "dracpu",
    DRA_MODULE,
    "github.com/kubernetes-sigs/dra-driver-cpu/cmd/dracpu",
    "github.com/kubernetes-sigs/dra-driver-cpu",
)
KUBE_SCORE = Component(
    "kube-score",
    KUBE_SCORE_MODULE,
    "github.com/zegl/kube-score/cmd/kube-score",
    "github.com/zegl/kube-score",
    "version",
    floor=(1, 20, 0),
)
KREW = Component(
    "krew",
    KREW_MODULE,
    "sigs.k8s.io/krew/cmd/krew",
    "sigs.k8s.io/krew",
    "version",
    floor=(0, 4, 3),
)
ACTIONLINT = Component(
    "actionlint",
    PUBLISHING_MODULE,
    "github.com/rhysd/actionlint/cmd/actionlint",
    "github.com/rhysd/actionlint",
    floor=(1, 7, 12),
)
CRANE = Component(
    "crane",
    PUBLISHING_MODULE,
    "github.com/google/go-containerregistry/cmd/crane",
    "github.com/google/go-containerregistry",
    "version",
)
KUBE_ROUTER = Component(
    "kube-router",
    KUBE_ROUTER_MODULE,
    "github.com/cloudnativelabs/kube-router/v2/cmd/kube-router",
    "github.com/cloudnativelabs/kube-router/v2",
    floor=(2, 1, 0),
)
TOPOLOGY_SCHEDULER = Component(
    "scheduler-plugins",
    SCHEDULER_MODULE,
    "sigs.k8s.io/scheduler-plugins/cmd/scheduler",
    "sigs.k8s.io/scheduler-plugins",
)
TOPOLOGY_UPDATER = Component(
    "nfd-topology-updater",
    NFD_MODULE,
    "sigs.k8s.io/node-feature-discovery/cmd/nfd-topology-updater",
    "sigs.k8s.io/node-feature-discovery",
    floor=(0, 18, 0),
)
COLLECTOR = Component("otelcol", COLLECTOR_MODULE, ".", "go.opentelemetry.io/collector/otelcol")
COMPONENTS: Mapping[str, Component] = {
    component.name: component
    for component in (
        ETCD,
        _kubernetes("kube-apiserver"),
        _kubernetes("kube-controller-manager"),
        _kubernetes("kube-scheduler"),
        _kubernetes("kubelet"),
        _kubernetes("kubectl", "version --client --output=yaml"),
        _containerd("containerd"),
        _containerd("containerd-shim-runc-v2", "-v"),
        _containerd("ctr"),
        HELM,
        DRA_DRIVER,
        KUBE_SCORE,
        KREW,
        ACTIONLINT,
        CRANE,
        KUBE_ROUTER,
        COLLECTOR,
        TOPOLOGY_SCHEDULER,
        TOPOLOGY_UPDATER,
    )
}
TOOLS = tuple(
    one.name
    for one in (
        HELM,
        DRA_DRIVER,
        KUBE_SCORE,
        KREW,
        ACTIONLINT,
        CRANE,
        KUBE_ROUTER,
        COLLECTOR,
        TOPOLOGY_SCHEDULER,
        TOPOLOGY_UPDATER,
    )
)
"""No part of a cluster; single tests use them."""

CLUSTER = tuple(name for name in COMPONENTS if name not in TOOLS)
CONTROL_PLANE = ("etcd", "kube-apiserver", "kubectl")
RUNTIME = ("containerd", "containerd-shim-runc-v2", "ctr")


def check_choice(chosen: str = CHOSEN_KUBERNETES) -> None:
    """Make sure that there is a module for the chosen release of Kubernetes.

    Raises:
        LabError: there is none.
    """
    there = sorted(one.parent.name for one in OTHER_KUBERNETES.glob("*/go.mod"))
    if chosen and chosen not in there:
        choices = " or ".join(there)
        raise LabError(f"{KUBERNETES_VARIABLE} is {chosen!r}; set it to {choices}, or not at all")


def parse_version(text: str) -> Version | None:
    """The first `1.2.3` in `text`, or None."""
    found = re.search(r"(\d+)\.(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2]), int(found[3])) if found else None


def cache_folder(component: Component, environment: Mapping[str, str]) -> Path:
    """The folder of built copies: one for each content of go.mod, go.sum and machine type.

    It does not depend on the Go release, so that a machine without Go can use the copies.
    """
    content = sha256(platform.machine().encode())
    for name in ("go.mod", "go.sum"):
        content.update((component.module / name).read_bytes())
    return cache_root(environment) / content.hexdigest()[:16]


def cache_root(environment: Mapping[str, str]) -> Path:
    """NUMAPIN_LAB_CACHE, else numapin/lab in the user's cache folder (XDG)."""
    if chosen := environment.get("NUMAPIN_LAB_CACHE"):
        return Path(chosen).expanduser().absolute()
    base = environment.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "numapin" / "lab"


def read_version(component: Component, path: Path) -> Version | None:
    """The version that the program prints; None if it prints none or does not run."""
    try:
        answer = subprocess.run(
            [path, *component.version_flag.split()],
            capture_output=True,
            text=True,
            timeout=VERSION_SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return parse_version(answer.stdout + answer.stderr)


def find(
    component: Component,
    environment: Mapping[str, str] = os.environ,
    version_of: Callable[[Component, Path], Version | None] = read_version,
) -> tuple[Found | None, list[str]]:
    """Search for one component.

    Args:
        component: what to look for.
        environment: holds KUBEBUILDER_ASSETS, PATH and the folder of the cache.
        version_of: reads the version of a program.

    Returns:
        The copy to use (None: it must be built), and a remark on each copy that is not used.
    """
    remarks: list[str] = []
    if assets := environment.get("KUBEBUILDER_ASSETS"):
        path = Path(assets).absolute() / component.name
        if os.access(path, os.X_OK):
            return Found(component, path, "KUBEBUILDER_ASSETS"), remarks
    if on_path := shutil.which(component.name, path=environment.get("PATH", "")):
        version = version_of(component, Path(on_path))
        if version is not None and component.accepts(version):
            return Found(component, Path(on_path), "PATH"), remarks
        shown = ".".join(map(str, version)) if version else "of unknown version"
        remarks.append(f"{on_path} is {shown}, the lab needs {component.wanted()}: not used")
    built = cache_folder(component, environment) / component.name
    if os.access(built, os.X_OK):
        return Found(component, built, "cache"), remarks
    return None, remarks
