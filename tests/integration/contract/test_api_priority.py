"""How the API server shares its time between operator, enforcers and other clients."""

from typing import Any

import pytest

from numapin_api import names
from numapin_lab.controlplane.api import ApiServer
from numapin_lab.controlplane.kubectl import Kubectl
from numapin_lab.controlplane.servers import ControlPlane
from numapin_lab.controlplane.service_accounts import ServiceAccount, request_token

FLOW_CONTROL = "/apis/flowcontrol.apiserver.k8s.io/v1"
LEASES = "/apis/coordination.k8s.io/v1"
OPERATOR = ServiceAccount(names.NAMESPACE, "numapin-operator")
ENFORCER = ServiceAccount(names.NAMESPACE, "numapin-enforcer")
TENANT = ServiceAccount("default", "default")
ASSIGNMENTS = "/apis/numapin.io/v1beta1/nodeassignments"
OWN_LEASE = f"{LEASES}/namespaces/{names.NAMESPACE}/leases/{names.LEADER_LEASE}"

ENFORCERS = ("numapin-enforcer", "numapin-enforcer")
CONTROLLERS = ("numapin-operator", "workload-high")
ELECTION = ("numapin-leader-election", "leader-election")
OTHERS = ("service-accounts", "workload-low")
"""Flow schema and priority level."""


def classified(plane: ControlPlane, account: ServiceAccount, path: str) -> tuple[str, str]:
    """The names of flow schema and priority level by which a request of `account` is served.

    Source: kubernetes.io/docs/concepts/cluster-administration/flow-control, "Diagnostics".
    """
    token = request_token(plane, account)
    headers = ApiServer(plane.server, plane.ca, token).headers(path)
    return (
        _name(plane, "flowschemas", headers["X-Kubernetes-PF-FlowSchema-UID"]),
        _name(plane, "prioritylevelconfigurations", headers["X-Kubernetes-PF-PriorityLevel-UID"]),
    )


def _name(plane: ControlPlane, resource: str, uid: str) -> str:
    items: list[Any] = plane.api.get(f"{FLOW_CONTROL}/{resource}")["items"]
    (found,) = (one["metadata"]["name"] for one in items if one["metadata"]["uid"] == uid)
    assert isinstance(found, str)
    return found


@pytest.mark.parametrize(
    ("account", "path", "served"),
    [
        (ENFORCER, f"{ASSIGNMENTS}/a", ENFORCERS),
        (ENFORCER, f"{ASSIGNMENTS}?fieldSelector=metadata.name=a", ENFORCERS),
        (ENFORCER, "/version", ENFORCERS),
        (OPERATOR, ASSIGNMENTS, CONTROLLERS),
        (OPERATOR, "/api/v1/namespaces/default/pods", CONTROLLERS),
        (OPERATOR, OWN_LEASE, ELECTION),
        (OPERATOR, f"{LEASES}/leases", CONTROLLERS),
        (TENANT, ASSIGNMENTS, OTHERS),
    ],
)
def test_each_part_is_served_at_its_level(
    installed: Kubectl,
    control_plane: ControlPlane,
    account: ServiceAccount,
    path: str,
    served: tuple[str, str],
) -> None:
    assert classified(control_plane, account, path) == served
