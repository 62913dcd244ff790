import json
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


SCC_FIELDS = {
    "boolean": (
        *("allowHostDirVolumePlugin", "allowHostIPC", "allowHostNetwork", "allowHostPID"),
        *("allowHostPorts", "allowPrivilegeEscalation", "allowPrivilegedContainer"),
        *("defaultAllowPrivilegeEscalation", "readOnlyRootFilesystem"),
    ),
    "array": (
        *("allowedCapabilities", "allowedUnsafeSysctls", "defaultAddCapabilities"),
        *("forbiddenSysctls", "groups", "requiredDropCapabilities", "seccompProfiles"),
        *("users", "volumes"),
    ),
}
"""Fields of SecurityContextConstraints. Source: github.com/openshift/api, security/v1/types.go."""

SCC_STRATEGIES = {
    "fsGroup": {"type": "string"},
    "runAsUser": {
        "type": "string",
        "uid": "integer",
        "uidRangeMin": "integer",
        "uidRangeMax": "integer",
    },
    "seLinuxContext": {"type": "string"},
    "supplementalGroups": {"type": "string"},
}


@pytest.fixture(scope="session")
def openshift(installed: Kubectl) -> None:
    """The kind of OpenShift, as far as a cluster without OpenShift knows it: its fields."""
    fields: dict[str, object] = {"priority": {"type": "integer"}}
    for type_, names in SCC_FIELDS.items():
        of = {"items": {"type": "string"}} if type_ == "array" else {}
        fields |= {name: {"type": type_, **of} for name in names}
    for name, parts in SCC_STRATEGIES.items():
        properties = {part: {"type": one} for part, one in parts.items()}
        fields[name] = {"type": "object", "properties": properties}
    plural = "securitycontextconstraints"
    schema = {"openAPIV3Schema": {"type": "object", "properties": fields}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    body = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.security.openshift.io"},
        "spec": {
            "group": "security.openshift.io",
            "names": {"kind": "SecurityContextConstraints", "plural": plural},
            "scope": "Cluster",
            "versions": [version],
        },
    }
    installed("apply", "-f", "-", text=json.dumps(body))
    installed("wait", "--for=condition=Established", "crd", f"{plural}.security.openshift.io")


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
