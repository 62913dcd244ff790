"""What the lab needs of the machine; all of it is checked before anything starts."""

import os
from collections.abc import Callable, Mapping

from numapin_lab.components.build import find_go
from numapin_lab.components.catalog import CLUSTER, COMPONENTS, find
from numapin_lab.errors import LabError, MissingError
from numapin_lab.images.build import check_builders
from numapin_lab.node.cgroups import MOUNTS, hierarchies
from numapin_lab.node.containerd import SEARCH_PATH, find_runc
from numapin_lab.node.image import find_busybox
from numapin_lab.node.kubelet import node_address
from numapin_lab.node.pod_network import find_plugins

ROOT_REMEDY = "sudo --preserve-env=PATH,NUMAPIN_LAB_CACHE "


def check(command: str, environment: Mapping[str, str] = os.environ, *, pods: bool = False) -> None:
    """Check that `up` can work.

    Args:
        command: what the user typed, to be shown again with sudo before it.
        environment: PATH, and where components are searched.
        pods: numapin runs as pods; they need images and a network.

    Raises:
        LabError: something is missing; the message names all of it, each with its remedy.
    """
    checks: list[Callable[[], object]] = [
        lambda: check_root(command, os.geteuid()),
        check_cgroups,
        find_runc,
        lambda: find_busybox(SEARCH_PATH),
        node_address,
        lambda: check_go(environment),
    ]
    if pods:
        checks += [find_plugins, lambda: check_builders(environment)]
    missing = []
    for found in checks:
        try:
            found()
        except MissingError as error:
            missing.append(str(error))
    if missing:
        raise LabError("\n".join(missing))


def check_root(command: str, user: int) -> None:
    """Check for root: kubelet and containerd create cgroups, namespaces and mounts."""
    if user != 0:
        raise MissingError("the lab needs root: it makes cgroups and mounts", ROOT_REMEDY + command)


def check_cgroups() -> None:
    """Check that a cgroup hierarchy has cpusets."""
    for folder in hierarchies(MOUNTS.read_text()):
        controllers = folder / "cgroup.controllers"
        offered = controllers.read_text().split() if controllers.exists() else []
        if "cpuset" in offered or (folder / "cpuset.cpus").exists():
            return
    raise MissingError(
        "no cgroup hierarchy has the cpuset controller", "mount -t cgroup2 none /sys/fs/cgroup"
    )


def check_go(environment: Mapping[str, str]) -> None:
    """Check for Go, if a component must be built."""
    absent = [one for name in CLUSTER if not find(one := COMPONENTS[name], environment)[0]]
    for module in {one.module for one in absent}:
        find_go(module, environment)
