"""Find or build what a test needs just before it: no time limit counts a first build.

    PYTHONPATH=tests python -m support.suite.components

builds all of it, in the order of use in `make test`: a test then waits for what is not ready.
"""

import os
import shutil
from collections.abc import Generator
from typing import Final

import pytest

from numapin_lab.components.build import provide, say
from numapin_lab.components.catalog import (
    CLUSTER,
    COLLECTOR,
    CONTROL_PLANE,
    DRA_DRIVER,
    HELM,
    KREW,
    KUBE_ROUTER,
    KUBE_SCORE,
    RUNTIME,
    TOOLS,
)
from numapin_lab.errors import LabError
from numapin_lab.images.build import provide_images
from numapin_lab.vm.kernel import provide_kernel
from numapin_lab.vm.machine import QEMU
from numapin_lab.vm.snapshot import provide_snapshot
from support.suite.areas import has_pods

COMPONENTS: Final = {
    "control_plane": CONTROL_PLANE,
    "containerd": RUNTIME,
    "helm": (HELM.name,),
    "receiver": (COLLECTOR.name,),
    "dra_driver": (DRA_DRIVER.name,),
    "kube_score": (KUBE_SCORE.name,),
    "krew": (KREW.name,),
    "kube_router": (KUBE_ROUTER.name,),
    "cluster": CLUSTER,
    "installed_as_pods": CLUSTER,
    "static_lab": CLUSTER,
    "vm_lab": CLUSTER,
}
"""What each fixture needs."""

IMAGES: Final = "the images"
KERNEL, SNAPSHOT = "vm", "vm_lab"
"""Fixtures of virtual machines."""

DRIVER: Final = "NUMAPIN_TEST_DRIVER"
"""The cgroup driver of nodes in virtual machines: `systemd`, else `cgroupfs`."""


def has_systemd() -> bool:
    """Whether nodes in virtual machines have the cgroup driver `systemd`."""
    return os.environ.get(DRIVER) == "systemd"


class Components:
    """Provides for each test before its clock starts to run."""

    def __init__(self, config: pytest.Config) -> None:
        self._capture = config.pluginmanager.getplugin("capturemanager")
        self._provided: set[str] = set()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Find or build what the test asks for. If that fails, its fixtures will say so again."""
        wanted = set(getattr(item, "fixturenames", ()))
        if has_pods(item):
            wanted.add(IMAGES)
        if wanted := wanted - self._provided:
            self._provided |= wanted
            with self._capture.global_and_fixture_disabled():
                try:
                    _provide(wanted)
                except LabError as error:
                    say(f"lab: {error}")
        return (yield)


def _provide(wanted: set[str]) -> None:
    names = [name for one in COMPONENTS if one in wanted for name in COMPONENTS[one]]
    programs = provide(list(dict.fromkeys(names))) if names else {}
    if IMAGES in wanted:
        provide_images(progress=say)
    if shutil.which(QEMU) is None:
        return
    if {KERNEL, SNAPSHOT} & wanted:
        provide_kernel(progress=say)
    if SNAPSHOT in wanted:
        paths = {name: found.path for name, found in programs.items()}
        provide_snapshot(paths, progress=say, systemd=has_systemd())


if __name__ == "__main__":
    provide(CLUSTER)
    provide_images(progress=say)
    provide(TOOLS)
