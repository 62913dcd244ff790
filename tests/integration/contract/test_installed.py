"""What users see of the two kinds, and who may write what, on a real API server."""

import json
import secrets
from collections.abc import Iterator
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path

import pytest
import yaml

from numapin_api.cpupolicy import CpuPolicySpec
from numapin_api.names import ENFORCER_SERVICE_ACCOUNT, NAMESPACE, OPERATOR_SERVICE_ACCOUNT
from numapin_api.nodeassignment import NodeAssignmentSpec
from numapin_lab.controlplane.api import AnswerError
from numapin_lab.controlplane.kubectl import Kubectl
from numapin_lab.controlplane.servers import ControlPlane
from numapin_lab.controlplane.service_accounts import ServiceAccount, request_token
from numapin_lab.errors import LabError
from support.suite.left_out import since_kubernetes

ROOT = Path(__file__).parents[3]
SPEC = {
    "policy": {"name": "fast", "generation": 3},
    "pools": {"reserved": "0", "shared": "0-1"},
    "containers": [
        {
            "podUID": "u1",
            "namespace": "default",
            "pod": "p",
            "container": "c",
            "cpus": "2-3",
            "exclusive": True,
        }
    ],
}
STATUS = {
    "pools": {"reserved": "0", "shared": "0-1", "exclusive": "2-3"},
    "refused": 3,
    "outdated": 2,
    "driftCount": 7,
    "lastPassTime": "2026-01-01T00:00:00Z",
    "cgroup": {"version": 2, "driver": "systemd"},
    "runtime": {"name": "containerd", "version": "2.1"},
    "conditions": [
        {
            "type": "Ready",
            "status": "True",
            "observedGeneration": 1,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
            "reason": "Enforced",
            "message": "as it should be",
        }
    ],
}


def _manifest(name: str, kind: str, spec: dict[str, object]) -> str:
    metadata = {"name": name}
    return yaml.safe_dump(
        {
            "apiVersion": "numapin.io/v1beta1",
            "kind": kind,
            "metadata": metadata,
            "spec": spec,
        }
    )


@pytest.fixture
def assignment(installed: Kubectl) -> Iterator[str]:
    """The name of a NodeAssignment of its own, and of the Node it is for."""
    name = f"node-{secrets.token_hex(4)}"
    installed("create", "-f", "-", text=_manifest(name, "NodeAssignment", SPEC))
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
    installed("create", "-f", "-", text=yaml.safe_dump(node))
    yield name
    installed("delete", "nodeassignment,node", name)


def _patch_status(kubectl: Kubectl, name: str, *who: str) -> str:
    patch = json.dumps({"status": STATUS})
    return kubectl(
        "patch", "nodeasg", name, "--subresource=status", "--type=merge", "-p", patch, *who
    )


def _report(plane: ControlPlane, name: str, token: str) -> None:
    """Write a status as an enforcer does; kubectl would read it first."""
    kind = {"apiVersion": "numapin.io/v1beta1", "kind": "NodeAssignment"}
    path = f"/apis/numapin.io/v1beta1/nodeassignments/{name}/status?fieldManager=t&force=true"
    body = {**kind, "metadata": {"name": name}, "status": STATUS}
    replace(plane.api, token=token).request("PATCH", path, body)


def test_get_nodeassignments_shows_policy_mode_and_counts(
    installed: Kubectl, assignment: str
) -> None:
    """Of v1alpha1, what an enforcer of 0.1 reports; of v1beta1, what the operator writes."""
    _patch_status(installed, assignment)
    older = "nodeassignments.v1alpha1.numapin.io"
    head, row = installed("get", older, assignment).splitlines()
    assert " ".join(head.split()) == (
        "NAME POLICY MODE EXCLUSIVE SHARED RESERVED REFUSED OUTDATED DRIFT READY AGE"
    )
    counts = ["3", "2", "7"]
    assert row.split()[:-1] == [assignment, "fast", "Static", "2-3", "0-1", "0", *counts, "True"]
    wide = installed("get", older, assignment, "-o", "wide").splitlines()[1]
    assert wide.split()[11:] == ["2", "systemd", "containerd", "2.1", "as", "it", "should", "be"]
    head = installed("get", "nodeasg", assignment).splitlines()[0]
    assert " ".join(head.split()) == "NAME POLICY MODE SHARED RESERVED REFUSED OUTDATED AGE"


def test_get_nodereports_shows_what_is_in_force(installed: Kubectl, assignment: str) -> None:
    body = {"apiVersion": "numapin.io/v1beta1", "kind": "NodeReport"}
    installed("create", "-f", "-", text=json.dumps(body | {"metadata": {"name": assignment}}))
    try:
        kept = ("pools", "conditions", "driftCount", "cgroup", "runtime")
        patch = json.dumps({"status": {key: STATUS[key] for key in kept}})
        options = ("--subresource=status", "--type=merge", "-p", patch)
        installed("patch", "noderep", assignment, *options)
        head, row = installed("get", "noderep", assignment).splitlines()
        assert " ".join(head.split()) == "NAME EXCLUSIVE SHARED RESERVED DRIFT READY REASON AGE"
        assert row.split()[:-2] == [assignment, "2-3", "0-1", "0", "7", "True"]
    finally:
        installed("delete", "noderep", assignment)


def test_what_the_server_stores_reads_back_as_the_models(
    installed: Kubectl, assignment: str
) -> None:
    stored = installed.get("nodeassignment", assignment)["spec"]
    assert NodeAssignmentSpec.model_validate(stored, extra="forbid") == (
        NodeAssignmentSpec.model_validate(SPEC)
    )
    text = _manifest("read-back", "CpuPolicy", {"reserved": {}, "options": {}, "pods": {}})
    policy = json.loads(installed("create", "--dry-run=server", "-o", "json", "-f", "-", text=text))
    assert CpuPolicySpec.model_validate(policy["spec"], extra="forbid") == CpuPolicySpec()


def test_the_short_names_and_the_category_work(installed: Kubectl, assignment: str) -> None:
    installed("get", "cpupol")
    assert assignment in installed("get", "numapin", "-o", "name")


def test_explain_reads_well(installed: Kubectl) -> None:
    shown = installed("explain", "cpupol.spec.options")
    assert "Options of the static CPU policy, as the kubelet's." in shown
    assert "fullPCPUsOnly\t<boolean>" in shown
    assert "(the kubelet's full-pcpus-only)" in " ".join(shown.split())


def test_the_status_is_a_subresource(installed: Kubectl, assignment: str) -> None:
    patch = json.dumps({"status": {"driftCount": 99}})
    installed("patch", "nodeasg", assignment, "--type=merge", "-p", patch)
    assert "driftCount" not in installed.get("nodeasg", assignment).get("status", {})


def _token(plane: ControlPlane, account: str, node: str | None = None) -> str:
    return request_token(plane, ServiceAccount(NAMESPACE, account, node))


@pytest.mark.parametrize("kind", ["NodeReport", "NodeTopology"])
def test_an_enforcer_reports_into_its_own_objects_only(
    control_plane: ControlPlane, installed: Kubectl, assignment: str, kind: str
) -> None:
    mine, other = assignment, f"{assignment}-other"
    token = _token(control_plane, ENFORCER_SERVICE_ACCOUNT, mine)
    api, root = replace(control_plane.api, token=token), "/apis/numapin.io/v1beta1"
    plural = {"NodeReport": "nodereports", "NodeTopology": "nodetopologies"}[kind]
    body = {"apiVersion": "numapin.io/v1beta1", "kind": kind}
    query = "fieldManager=t&force=true"
    for name in (mine, other):
        named = json.dumps(body | {"metadata": {"name": name}})
        installed("create", "-f", "-", text=named)
    try:
        patch = {**body, "metadata": {"name": mine}, "status": {}}
        api.request("PATCH", f"{root}/{plural}/{mine}/status?{query}", patch)
        for path in (f"{other}/status", other, mine, f"{mine}-third"):
            patch = {**body, "metadata": {"name": path.partition("/")[0]}}
            with pytest.raises(AnswerError) as refused:
                api.request("PATCH", f"{root}/{plural}/{path}?{query}", patch)
            assert refused.value.status == HTTPStatus.FORBIDDEN
        with pytest.raises(AnswerError):
            api.request("DELETE", f"{root}/{plural}/{mine}")
    finally:
        installed("delete", plural, mine, other)


def test_an_enforcer_writes_its_own_status_only(
    control_plane: ControlPlane, installed: Kubectl, assignment: str
) -> None:
    token = _token(control_plane, ENFORCER_SERVICE_ACCOUNT, assignment)
    mine = f"--token={token}"
    _report(control_plane, assignment, token)
    installed("create", "-f", "-", text=_manifest("another", "NodeAssignment", SPEC))
    try:
        with pytest.raises(LabError, match=f"{assignment} may not write the status of .*another"):
            _report(control_plane, "another", token)
    finally:
        installed("delete", "nodeasg", "another")
    for attempt in (
        ("patch", "nodeasg", assignment, "--type=merge", "-p", '{"spec":{"mode":"None"}}'),
        ("delete", "nodeasg", assignment),
        ("get", "pods"),
        ("get", "secrets"),
        ("get", "cpupol"),
    ):
        with pytest.raises(LabError, match="orbidden"):
            installed(*attempt, mine)


def _post_event(
    plane: ControlPlane,
    token: str,
    about: str,
    kind: str = "NodeAssignment",
    space: str = "default",
) -> None:
    """Post an Event as an enforcer does."""
    body = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": f"test.{secrets.token_hex(8)}", "namespace": space},
        "regarding": {"apiVersion": "numapin.io/v1beta1", "kind": kind, "name": about},
        "type": "Warning",
        "reason": "CpusetDrift",
        "action": "Repair",
        "note": "tried",
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "numapin.io/enforcer",
        "reportingInstance": about,
    }
    path = f"/apis/events.k8s.io/v1/namespaces/{space}/events"
    replace(plane.api, token=token).request("POST", path, body)


def test_an_enforcer_posts_events_about_its_own_assignment_only(
    control_plane: ControlPlane, assignment: str
) -> None:
    mine = _token(control_plane, ENFORCER_SERVICE_ACCOUNT, assignment)
    _post_event(control_plane, mine, assignment)
    refused = "only Events about the NodeAssignment of its own node"
    for other in (
        {"about": "another"},
        {"about": assignment, "kind": "Node"},
        {"about": assignment, "space": "kube-system"},
    ):
        with pytest.raises(LabError, match=refused):
            _post_event(control_plane, mine, **other)
    with pytest.raises(LabError, match=refused):
        _post_event(control_plane, _token(control_plane, ENFORCER_SERVICE_ACCOUNT), assignment)


def test_an_enforcer_whose_token_names_no_node_writes_nothing(
    control_plane: ControlPlane, installed: Kubectl, assignment: str
) -> None:
    nameless = _token(control_plane, ENFORCER_SERVICE_ACCOUNT)
    with pytest.raises(LabError, match="this token names no node"):
        _report(control_plane, assignment, nameless)


def test_in_another_namespace_too_an_enforcer_needs_a_token_with_its_node(
    installed: Kubectl, assignment: str
) -> None:
    """An overlay may rename the namespace and the accounts; the admission policy still matches."""
    for name in ("elsewhere", "numapin-enforcer-of-operators"):
        installed("create", "namespace", name)
        account, operator = "my-numapin-enforcer-2", "my-operator"
        try:
            for one in (account, operator):
                user = f"system:serviceaccount:{name}:{one}"
                installed("create", "serviceaccount", one, f"--namespace={name}")
                installed(
                    "create",
                    "clusterrolebinding",
                    one,
                    "--clusterrole=cluster-admin",
                    f"--user={user}",
                )
            token = installed("create", "token", account, f"--namespace={name}").strip()
            with pytest.raises(LabError, match="this token names no node"):
                _patch_status(installed, assignment, f"--token={token}")
            token = installed("create", "token", operator, f"--namespace={name}").strip()
            _patch_status(installed, assignment, f"--token={token}")
        finally:
            installed("delete", "clusterrolebinding", account, operator, "--ignore-not-found")
            installed("delete", "namespace", name, "--wait=false")


def test_the_operator_decides_and_cannot_reach_further(
    control_plane: ControlPlane, installed: Kubectl, assignment: str
) -> None:
    operator = f"--token={_token(control_plane, OPERATOR_SERVICE_ACCOUNT)}"
    body = installed.get("nodeasg", assignment)
    body["spec"]["pools"]["shared"] = "0-2"
    installed("replace", "-f", "-", operator, text=json.dumps(body))
    assert installed.get("nodeasg", assignment)["spec"]["pools"]["shared"] == "0-2"
    for attempt in (
        ("get", "secrets"),
        ("annotate", "nodeasg", assignment, "seen=yes"),
        ("delete", "node", assignment),
        ("get", "leases", "--namespace=kube-system"),
        ("delete", "lease", assignment, f"--namespace={NAMESPACE}"),
    ):
        with pytest.raises(LabError, match="orbidden"):
            installed(*attempt, operator)
    with pytest.raises(LabError, match="cannot create resource"):
        installed("create", "-f", "-", operator, text=_manifest("x", "CpuPolicy", {}))


@pytest.mark.parametrize(
    "folder",
    [".", pytest.param("devices", marks=since_kubernetes("1.34"))],  # resource.k8s.io/v1
)
def test_the_examples_are_accepted(installed: Kubectl, folder: str) -> None:
    installed("apply", "--dry-run=server", "-f", str(ROOT / "examples" / folder))
