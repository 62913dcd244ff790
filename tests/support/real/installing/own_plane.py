"""A control plane of a test's own, which it may install on, stop and restore."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from numapin_lab.controlplane.servers import ControlPlane, ControlPlanePorts
from numapin_lab.processes.ports import choose


@contextmanager
def own_plane(
    folder: Path, programs: Mapping[str, Path], flags: tuple[str, ...] = ()
) -> Iterator[ControlPlane]:
    """An API server on which nothing was installed; it ends with the context.

    Args:
        folder: where its files are.
        programs: etcd, kube-apiserver and kubectl.
        flags: more options of the API server.
    """
    plane = ControlPlane(folder, ControlPlanePorts(*choose(3)), programs, flags=flags)
    try:
        plane.start()
        yield plane
    finally:
        plane.stop()
