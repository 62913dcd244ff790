"""A lab in which numapin runs as pods, from its manifests, on a node in a virtual machine."""

from collections.abc import Set as AbstractSet
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from numapin_lab.cluster import Step, VmCluster
from numapin_lab.installed import manifests
from numapin_lab.installed.cluster import SHOWN, check_left_out, import_images, install
from numapin_lab.installed.guest import InstalledGuest
from numapin_lab.node.agents import Agent

INSTALL_SECONDS: Final = 900.0


class InstalledVmCluster(VmCluster):
    """As `InstalledCluster`, with cgroup v2, two NUMA nodes, and maybe systemd on the node."""

    overlay: Path = manifests.OVERLAY

    @cached_property
    def agents(self) -> tuple[Agent, ...]:
        """None: they are pods."""
        return ()

    @cached_property
    def guest(self) -> InstalledGuest:
        """What the node needs besides what a node of `VmCluster` has."""
        return InstalledGuest(self.vm, self.snapshot.kernel, self.folder / "modules")

    def documents(self) -> list[dict[str, Any]]:
        """What is installed."""
        return manifests.rendered(self.kubectl, self.overlay)

    def install(self) -> None:
        """As `InstalledCluster.install`, with patience: the node is emulated."""
        install(self.plane, self.overlay, INSTALL_SECONDS)

    def _steps(self, without: AbstractSet[str]) -> list[Step]:
        check_left_out(without)
        prepare, join, wait = self._node_steps()
        installs = () if without else ((SHOWN, self.install),)
        return [
            prepare,
            ("etcd and kube-apiserver", self.plane.start),
            *((controller.name, controller.start) for controller in self.controllers),
            join,
            ("the network of the pods", self.guest.connect),
            wait,
            ("the images of numapin", self._import_images),
            *installs,
        ]

    def _load(self) -> None:
        self.guest.copy_modules()
        super()._load()

    def _import_images(self) -> None:
        # Unpacked one after the other: pods that start at once would each unpack the same layers.
        import_images(self.guest.ctr, self.documents(), path=self.guest.path)
