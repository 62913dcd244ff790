"""Critical priorities where the API server limits who consumes them, as GKE does."""

import json
from collections.abc import Iterator
from functools import partial

import pytest
import yaml

from numapin_api import names
from numapin_lab.controlplane.kubectl import Kubectl
from numapin_lab.controlplane.servers import ControlPlane
from numapin_lab.errors import LabError
from numapin_lab.running_lab import eventually
from support.real.installing.helm import Helm, Object, by_name
from support.real.installing.own_plane import own_plane

LIMITED = {
    "apiVersion": "apiserver.config.k8s.io/v1",
    "kind": "AdmissionConfiguration",
    "plugins": [
        {
            "name": "ResourceQuota",
            "configuration": {
                "apiVersion": "apiserver.config.k8s.io/v1",
                "kind": "ResourceQuotaConfiguration",
                "limitedResources": [
                    {
                        "resource": "pods",
                        "matchScopes": [
                            {
                                "scopeName": "PriorityClass",
                                "operator": "In",
                                "values": ["system-node-critical", "system-cluster-critical"],
                            }
                        ],
                    }
                ],
            },
        }
    ],
}
"""Source: Kubernetes, "Limit Priority Class consumption by default"."""


@pytest.fixture(scope="module")
def kubectl(
    control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Kubectl]:
    folder = tmp_path_factory.mktemp("limited")
    config = folder / "admission.yaml"
    config.write_text(yaml.safe_dump(LIMITED))
    flags = (f"--admission-control-config-file={config}",)
    with own_plane(folder, control_plane.programs, flags) as plane:
        plane.kubectl("create", "namespace", names.NAMESPACE)
        yield plane.kubectl


def _pods(objects: dict[tuple[str, str], Object]) -> Iterator[Object]:
    for (kind, name), body in objects.items():
        if kind in ("Deployment", "DaemonSet"):
            template = body["spec"]["template"]
            metadata = template["metadata"] | {"name": name, "namespace": names.NAMESPACE}
            yield {"apiVersion": "v1", "kind": "Pod", **template, "metadata": metadata}


def test_the_pods_are_let_in_by_the_quota_of_the_preset_alone(helm: Helm, kubectl: Kubectl) -> None:
    objects = by_name(helm.preset("gke"))
    accounts = [one for (kind, _), one in objects.items() if kind == "ServiceAccount"]
    kubectl("apply", "-f", "-", text=yaml.safe_dump_all(accounts))
    pods = list(_pods(objects))
    for pod in pods:
        with pytest.raises(LabError, match="insufficient quota to match these scopes"):
            kubectl("create", "-f", "-", text=json.dumps(pod))
    key = ("ResourceQuota", "numapin-critical")
    kubectl("apply", "-f", "-", text=json.dumps(objects[key]))
    report = {"status": {"hard": objects[key]["spec"]["hard"], "used": {"pods": "0"}}}
    where = ("quota", key[1], "-n", names.NAMESPACE)
    patch = ("--subresource=status", "--type=merge", "-p", json.dumps(report))
    kubectl("patch", *where, *patch)  # as the controller of quotas does, which does not run here
    for pod in pods:
        eventually(partial(_is_created, kubectl, pod), True)
    assert len(pods) == 3


def _is_created(kubectl: Kubectl, pod: Object) -> bool:
    """The API server sees a new quota a moment later."""
    try:
        kubectl("create", "-f", "-", text=json.dumps(pod))
    except LabError as error:
        if "quota" not in str(error):
            raise
        return False
    return True
