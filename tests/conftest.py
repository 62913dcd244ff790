"""Fixtures that every kind of test may use: the real components, started once for a session."""

from collections.abc import Iterator

import pytest

from numapin_lab.build import provide, say
from numapin_lab.components import CONTROL_PLANE
from numapin_lab.controlplane import ControlPlane, ControlPlanePorts
from numapin_lab.ports import choose

# What each fixture needs; provided right after collection, so that a first build of some minutes
# is seen and counts against no test's time limit.
COMPONENTS = {
    "control_plane": CONTROL_PLANE,
}


def pytest_collection_finish(session: pytest.Session) -> None:
    """Find or build the components that the chosen tests ask for."""
    if session.config.option.collectonly:
        return
    wanted = {name for item in session.items for name in getattr(item, "fixturenames", ())}
    names = [name for fixture in COMPONENTS if fixture in wanted for name in COMPONENTS[fixture]]
    capture = session.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        provide(list(dict.fromkeys(names)), tell=say)


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A real etcd and kube-apiserver with nothing in them but the `default` service account.

    `.server`, `.ca`, `.admin_token`, `.kubeconfig`, `.ports` say how to reach it; `.kubectl(...)`
    and `.api` act as its administrator.
    """
    programs = {name: found.path for name, found in provide(CONTROL_PLANE).items()}
    folder = tmp_path_factory.mktemp("control-plane")
    plane = ControlPlane(folder, ControlPlanePorts(*choose(3)), programs)
    try:
        plane.start()
        yield plane
    finally:
        plane.stop()
