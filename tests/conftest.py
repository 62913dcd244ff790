"""Fixtures that every kind of test may use: the real components, started once for a session."""

import os
import shutil
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from numapin_lab.components.build import provide
from numapin_lab.components.catalog import CONTROL_PLANE
from numapin_lab.controlplane.servers import GUEST_VIEW, ControlPlane, ControlPlanePorts
from numapin_lab.lifecycle import LabFolder
from numapin_lab.node.containerd import Runtime
from numapin_lab.vm.machine import QEMU, QEMU_REMEDY, VirtualMachine
from support.real.audit import audit_flags
from support.real.containerd import private_runtime
from support.real.installing.own_plane import own_plane
from support.suite.areas import Areas
from support.suite.components import Components, has_systemd
from support.suite.left_out import LeftOut
from support.suite.still_machines import StillMachines

# Where the control plane is that runs outside the virtual machine: folder and port.
OUTSIDE = "NUMAPIN_TEST_CONTROL_PLANE"

VIRTUAL_MACHINES = {"vm", "vm_lab"}


class FailuresAtOnce:
    """Prints why a test failed when it fails: a long run may be stopped before its summary."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Print the error of a failed test."""
        terminal = self._config.pluginmanager.get_plugin("terminalreporter")
        if report.failed and terminal is not None:
            crash = getattr(report.longrepr, "reprcrash", None)
            at = f"{crash.path}:{crash.lineno}: {crash.message}" if crash else report.longreprtext
            terminal.write_line(f"\n{report.nodeid} ({report.when}): {at}")


def pytest_configure(config: pytest.Config) -> None:
    """Let a job that is cancelled (SIGTERM) end as Ctrl-C does: with everything torn down.

    A shell starts a command in the background with SIGINT ignored, and so would be what it starts.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for plugin in (FailuresAtOnce(config), LeftOut(), Components(config), Areas()):
        config.pluginmanager.register(plugin)
    config.pluginmanager.register(StillMachines(), StillMachines.NAME)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests in virtual machines, before `-m` selects by the marks."""
    for item in items:
        if VIRTUAL_MACHINES & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.vm)


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A real etcd and kube-apiserver with nothing in them but the `default` service account.

    `.server`, `.ca`, `.admin_token`, `.kubeconfig`, `.ports` say how to reach it; `.kubectl(...)`
    and `.api` act as its administrator. support.real.audit reads what our programs asked.
    """
    programs = {name: found.path for name, found in provide(CONTROL_PLANE).items()}
    if OUTSIDE in os.environ:
        yield _outside(programs, *os.environ[OUTSIDE].split())
        return
    folder = tmp_path_factory.mktemp("control-plane")
    with own_plane(folder, programs, audit_flags(folder)) as plane:
        yield plane


def _outside(programs: Mapping[str, Path], folder: str, port: str) -> ControlPlane:
    """The host's control plane, for tests in a virtual machine: one inside takes minutes."""
    ports = ControlPlanePorts(etcd=0, etcd_peer=0, apiserver=int(port))
    plane = ControlPlane(Path(folder), ports, programs, GUEST_VIEW)
    plane.write_kubeconfig()
    return plane


def skip_here(reason: str) -> None:
    """Skip what this machine cannot run; in CI, where it must, go on and fail."""
    if "CI" not in os.environ:
        pytest.skip(reason)


@pytest.fixture(scope="session")
def root() -> None:
    """What makes cgroups and mounts asks for this."""
    if os.geteuid() != 0:
        skip_here("needs root: it makes cgroups and mounts")


@pytest.fixture(scope="session")
def containerd(root: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runtime]:
    """A real containerd 2 with the machine's runc.

    `.socket` serves CRI, `.nri_socket` NRI; `.image` is there already; `.ctr(...)` looks inside.
    Put sandboxes below `.cgroup.path`: all of it is removed at the end, with whatever still runs.
    """
    with private_runtime(tmp_path_factory.mktemp("runtime")) as runtime:
        yield runtime


@pytest.fixture(scope="module")
def vm_lab(
    root: None, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LabFolder]:
    """A lab that is down, and comes up with its node in a virtual machine; removed at the end."""
    if shutil.which(QEMU) is None:
        skip_here(f"needs QEMU; {QEMU_REMEDY}")
    folder = LabFolder(tmp_path_factory.mktemp("vm-lab"), vm=True, systemd=has_systemd())
    machines: StillMachines = request.config.pluginmanager.getplugin(StillMachines.NAME)
    try:
        with machines.watched(folder):
            yield folder
    finally:
        folder.down()


@pytest.fixture(scope="session")
def vm() -> VirtualMachine:
    """A virtual machine with 8 CPUs, 2 NUMA nodes and cgroup v2, booted for each `.run(command)`.

    The command finds the host's files, this checkout too; what it writes is gone with it. All of
    one boot's checks belong in one command: a boot takes seconds, and so does starting Python.
    """
    if shutil.which(QEMU) is None:
        skip_here(f"needs QEMU; {QEMU_REMEDY}")
    chosen = ("NUMAPIN_LAB_CACHE", "NUMAPIN_LAB_KUBERNETES", "KUBEBUILDER_ASSETS")
    kept = ("HOME", "XDG_CACHE_HOME", *chosen)
    environment = {name: os.environ[name] for name in kept if name in os.environ}
    return VirtualMachine(environment=environment)
