"""A lab in which numapin runs as pods, from its manifests."""

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Final

from numapin_lab.cluster import Cluster, Step
from numapin_lab.controlplane.servers import SERVICE_ADDRESS, ControlPlane
from numapin_lab.errors import LabError
from numapin_lab.images.build import Image, provide_images
from numapin_lab.installed import manifests
from numapin_lab.installed.network import NodeNetwork
from numapin_lab.node.agents import Agent
from numapin_lab.node.cgroups import LabCgroup
from numapin_lab.node.containerd import SEARCH_PATH, Runtime
from numapin_lab.node.image import find_busybox
from numapin_lab.node.isolated_machine import IsolatedMachine
from numapin_lab.node.kubelet import node_address

BOTH: Final = {"operator", "enforcer"}
SHOWN: Final = "kubectl apply -k manifests/overlays/default"
"""What `install` does, for people."""


class InstalledCluster(Cluster):
    """A lab whose node is isolated from this machine, and has numapin's images.

    `up` also installs numapin with `kubectl apply -k manifests/overlays/default`, unless it is
    told to leave out both operator and enforcer.
    """

    overlay: Path = manifests.OVERLAY
    shown: ClassVar[str] = SHOWN
    """What `install` does, for people."""

    def documents(self) -> list[dict[str, Any]]:
        """What is installed."""
        return manifests.rendered(self.kubectl, self.overlay)

    @cached_property
    def machine(self) -> IsolatedMachine:
        """The namespaces of the node."""
        run, cgroup = self.state.run, LabCgroup(self.state.name)
        busybox = find_busybox(SEARCH_PATH)
        addresses = (SERVICE_ADDRESS, node_address())
        kubelet = self.folder / "kubelet" / "root"
        return IsolatedMachine(run, cgroup, kubelet, busybox, addresses)

    @cached_property
    def runtime(self) -> Runtime:
        """Containerd."""
        folder, cgroup = self.folder / "containerd", self.machine.cgroup
        return Runtime(folder, self.state.run, cgroup, self.programs, machine=self.machine)

    @cached_property
    def network(self) -> NodeNetwork:
        """What connects the node and the API server."""
        ports = self.state.ports
        run, machine = self.state.run, self.machine
        return NodeNetwork(self.folder, run, machine, ports.apiserver, ports.kubelet)

    @cached_property
    def agents(self) -> tuple[Agent, ...]:
        """None: they are pods."""
        return ()

    def install(self) -> None:
        """`kubectl apply -k`, and wait until every pod of numapin is ready.

        Raises:
            LabError: the API server refuses an object, or a pod does not become ready.
        """
        install(self.plane, self.overlay)

    def _steps(self, without: AbstractSet[str]) -> list[Step]:
        check_left_out(without)
        prepare, join, wait = self._node_steps()
        installs = () if without else ((self.shown, self.install),)
        return [
            prepare,
            ("the images of numapin", self._import_images),
            ("etcd and kube-apiserver", self.plane.start),
            ("the node's network", self.network.start),
            *((controller.name, controller.start) for controller in self.controllers),
            join,
            wait,
            *installs,
        ]

    def _import_images(self) -> None:
        """Import the images that the containers name, if they are not there yet."""
        import_images(self.runtime.ctr, self.documents(), "--no-unpack", images=lambda: self.images)

    @cached_property
    def images(self) -> Mapping[str, Image]:
        """The images of this checkout by program; built if they are not in the cache."""
        return images_by_program()


def check_left_out(without: AbstractSet[str]) -> None:
    """Check which agents are left out.

    Raises:
        LabError: one of them alone.
    """
    if without not in (set(), BOTH):
        raise LabError("numapin runs as pods here: leave out operator and enforcer, or none")


def install(
    plane: ControlPlane, overlay: Path, seconds: float = manifests.ROLLED_OUT_SECONDS
) -> None:
    """`kubectl apply -k`, and wait up to `seconds` until every pod of numapin is ready.

    Raises:
        LabError: the API server refuses an object, or a pod does not become ready.
    """
    plane.kubectl("apply", "-k", str(overlay))
    manifests.wait_rolled_out(plane.api, plane.kubectl, seconds)


def images_by_program() -> dict[str, Image]:
    """The images of this checkout by program; built if they are not in the cache."""
    return {image.program: image for image in provide_images()}


def import_images(
    ctr: Callable[..., str],
    documents: Iterable[Mapping[str, Any]],
    *options: str,
    path: Callable[[Path], Path] = Path,
    images: Callable[[], Mapping[str, Image]] = images_by_program,
) -> None:
    """Import the images that the containers name, if they are not there yet.

    Args:
        ctr: runs `ctr` on the node.
        documents: what is installed.
        options: of `ctr images import`.
        path: where the node finds a file of this machine.
        images: by program; those of this checkout by default.
    """
    present = set(ctr("images", "list", "--quiet").split())
    missing = manifests.images(documents) - present
    known = images() if missing else {}
    for name in missing:
        image = named(name, known)
        ctr("images", "import", *options, str(path(image.archive)))
        if name != image.name:
            ctr("images", "tag", image.name, name)


def named(name: str, images: Mapping[str, Image]) -> Image:
    """The image for a name in a manifest, such as `registry/numapin-operator:0.1.0`.

    Raises:
        LabError: the name is of none of our images.
    """
    program = name.rpartition("/")[2].partition(":")[0].removeprefix("numapin-")
    if program not in images:
        raise LabError(f"the manifests name the image {name}, and numapin has no such image")
    return images[program]
