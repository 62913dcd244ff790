from pathlib import Path

import pytest

from numapin_lab.components.build import provide
from numapin_lab.components.catalog import HELM
from numapin_lab.controlplane.kubectl import Kubectl
from numapin_lab.controlplane.servers import ControlPlane
from support.real.installing.helm import Helm

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="session")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    return Helm(provide([HELM.name])[HELM.name].path, tmp_path_factory.mktemp("helm"))


@pytest.fixture(scope="session")
def installed(control_plane: ControlPlane) -> Kubectl:
    """kubectl of a cluster on which the manifests that users apply are applied."""
    kubectl = control_plane.kubectl
    kubectl("apply", "--server-side", "-k", str(ROOT / "manifests" / "overlays" / "default"))
    kubectl(
        "wait",
        "--for=condition=Established",
        "--timeout=120s",
        "crd",
        "-l",
        "app.kubernetes.io/name=numapin",
    )
    return kubectl
