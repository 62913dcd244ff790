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
from numapin_lab.components.catalog import CLUSTER, CONTROL_PLANE, RUNTIME, TOOLS, Component
from numapin_lab.errors import LabError
from numapin_lab.images.build import provide_images
from numapin_lab.vm.kernel import provide_kernel
from numapin_lab.vm.machine import QEMU
from numapin_lab.vm.snapshot import provide_snapshot
from support.suite.areas import has_pods

OF_FIXTURES: Final = {
    "control_plane": CONTROL_PLANE,
    "containerd": RUNTIME,
    "cluster": CLUSTER,
    "vm_lab": CLUSTER,
}
"""What each fixture needs. A module that imports a component of the catalog needs that one."""

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
        if new := wanted(item) - self._provided:
            self._provided |= new
            with self._capture.global_and_fixture_disabled():
                try:
                    _provide(new)
                except LabError as error:
                    say(f"lab: {error}")
        return (yield)


def wanted(item: pytest.Item) -> set[str]:
    """The fixtures of a test, and the names of components that its module asks for itself."""
    module = vars(item.module) if isinstance(item, pytest.Function) else {}
    found = {one.name for one in module.values() if isinstance(one, Component)}
    found.update(getattr(item, "fixturenames", ()))
    if item.nodeid.startswith("tests/e2e/"):
        found.add("cluster")
    if has_pods(item):
        found.add(IMAGES)
    return found


def _provide(new: set[str]) -> None:
    names = [name for one in OF_FIXTURES if one in new for name in OF_FIXTURES[one]]
    names += [name for name in TOOLS if name in new]
    programs = provide(list(dict.fromkeys(names))) if names else {}
    if IMAGES in new:
        provide_images(progress=say)
    if shutil.which(QEMU) is None:
        return
    if {KERNEL, SNAPSHOT} & new:
        provide_kernel(progress=say)
    if SNAPSHOT in new:
        paths = {name: found.path for name, found in programs.items()}
        provide_snapshot(paths, progress=say, systemd=has_systemd())


if __name__ == "__main__":
    provide(CLUSTER)
    provide_images(progress=say)
    provide(TOOLS)
