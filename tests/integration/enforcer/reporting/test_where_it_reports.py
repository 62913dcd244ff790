"""Objects that come, go, or cannot be read: all is reported where the operator looks for it."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from numapin_api.names import NAMESPACE
from numapin_client.resources import NODE_ASSIGNMENTS, NODE_REPORTS, NODE_TOPOLOGIES
from numapin_lab.controlplane.api import AnswerError
from numapin_lab.controlplane.installation import install
from numapin_lab.controlplane.servers import ControlPlane
from numapin_lab.controlplane.service_accounts import ServiceAccount, log_in
from numapin_lab.node.played_kubelet import Pod
from support.real.enforcer_node import PATH, Node, assigned, spec
from support.real.kernel_cgroups import write_cpus
from support.real.reporting.own_objects import OwnObjects, line, spec_of_lines
from support.real.sampled_cpus import sampled
from support.real.waiting import eventually

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
OPERATORS = {"refusalsOmitted": 2}


async def test_an_upgraded_operator_and_one_that_goes_back(
    node: Node, objects: OwnObjects, pod: tuple[Pod, str], quick_disk: dict[str, str]
) -> None:
    uid, cgroup = pod[0].uid, pod[1]
    node.assign(spec(assigned(uid, "main", "1"), shared="0"))
    await node.start(**quick_disk)
    await eventually(node.reports_exclusive, "the old report")
    write_cpus(cgroup, "0")
    await eventually(lambda: node.status.get("driftCount") == 1, "the count")
    await objects.edit(NODE_ASSIGNMENTS, OPERATORS)
    with sampled(cgroup) as seen:
        objects.create()
        await eventually(lambda: objects.report.get("pools", {}).get("exclusive") == "1")
        await eventually(lambda: objects.old_status == {}, "the old status to go")
        assert objects.assignment_status["refusalsOmitted"] == 2
        assert objects.report["driftCount"] == 1
        await eventually(lambda: objects.topology.get("numaNodes"), "the hardware")
        objects.replace(spec_of_lines(line(uid, "1", 2), shared="0"))
        await eventually(lambda: objects.has_exclusive(node.object["metadata"]["generation"]))
        node_spec = spec(assigned(uid, "main", "1"), shared="0")
        objects.replace(node_spec)
        objects.delete()
        await eventually(node.reports_exclusive, "the status again")
        assert (
            objects.assignment_status["driftCount"],
            objects.assignment_status["refusalsOmitted"],
        ) == (1, 2)
        assert objects.assignment_status["topology"]["numaNodes"]
    assert seen == {"1"}


async def test_a_report_that_is_deleted_by_hand_is_written_again(
    node: Node, objects: OwnObjects, reporting: str
) -> None:
    before = objects.report
    objects.delete()
    objects.create()
    await eventually(objects.has_exclusive, "the report again")
    await eventually(lambda: objects.topology.get("numaNodes"), "the hardware again")
    await eventually(lambda: objects.old_status == {})
    assert objects.report["pools"] == before["pools"]


async def test_an_assignment_that_is_created_again_moves_nothing(
    node: Node, objects: OwnObjects, reporting: str, pod: tuple[Pod, str]
) -> None:
    first = node.object["metadata"]["uid"]
    with sampled(reporting) as seen:
        node.api.request("DELETE", f"{PATH}/{node.name}")
        await asyncio.sleep(1)
        assert objects.report["observed"]["uid"] == first
        objects.replace(spec_of_lines(line(pod[0].uid, "1", 1), shared="0"))
        assert node.object["metadata"]["uid"] != first
        await eventually(objects.has_exclusive, "the report about the new object")
    assert seen == {"1"}
    assert objects.report["enforced"]["uid"] == node.object["metadata"]["uid"]


def serves(plane: ControlPlane, path: str) -> bool:
    try:
        return plane.api.exists(path)
    except AnswerError:
        return False


@pytest.fixture
async def older_crds(contract: ControlPlane) -> AsyncIterator[ControlPlane]:
    """The API server does not know both kinds."""
    for one in (NODE_REPORTS, NODE_TOPOLOGIES):
        contract.api.request("DELETE", f"{CRDS}/{one.plural}.{one.group}")
    kinds = (NODE_REPORTS.collection_path(), NODE_TOPOLOGIES.collection_path())
    await eventually(lambda: not any(serves(contract, one) for one in kinds), "the kinds to go")
    yield contract
    await asyncio.to_thread(install, contract)


async def test_without_the_kinds_it_reports_as_before_and_finds_them_later(
    node: Node,
    objects: OwnObjects,
    pod: tuple[Pod, str],
    quick_disk: dict[str, str],
    older_crds: ControlPlane,
) -> None:
    node.assign(spec(assigned(pod[0].uid, "main", "1"), shared="0"))
    await node.start(**quick_disk)
    await eventually(node.reports_exclusive, "the status")
    assert node.probe("readyz")[0] == 200
    await asyncio.to_thread(install, older_crds)
    objects.create()
    await eventually(lambda: objects.report.get("pools", {}).get("exclusive") == "1")
    await eventually(lambda: objects.old_status == {}, "the old status to go")


OLD_ROLE = [
    {"apiGroups": ["numapin.io"], "resources": ["nodeassignments"], "verbs": ["list", "watch"]},
    {"apiGroups": ["numapin.io"], "resources": ["nodeassignments/status"], "verbs": ["patch"]},
]
RBAC = "/apis/rbac.authorization.k8s.io/v1"


@pytest.fixture
def older_role(node: Node, contract: ControlPlane, tmp_path: Path) -> dict[str, str]:
    """The login of an account that may read and write NodeAssignments only."""
    name = f"numapin-enforcer-{node.name}"
    body = {"metadata": {"name": name}}
    contract.api.create(f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts", body)
    contract.api.create(f"{RBAC}/clusterroles", body | {"rules": OLD_ROLE})
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
    subject = {"kind": "ServiceAccount", "name": name, "namespace": NAMESPACE}
    binding = body | {"roleRef": reference, "subjects": [subject]}
    contract.api.create(f"{RBAC}/clusterrolebindings", binding)
    account = ServiceAccount(NAMESPACE, name, node.name)
    return {"kubeconfig": str(log_in(contract, account, tmp_path / "older"))}


async def test_with_an_older_role_it_reports_as_before(
    node: Node,
    objects: OwnObjects,
    pod: tuple[Pod, str],
    quick_disk: dict[str, str],
    older_role: dict[str, str],
) -> None:
    objects.create()
    node.assign(spec(assigned(pod[0].uid, "main", "1"), shared="0"))
    await node.start(**quick_disk, **older_role)
    await eventually(node.reports_exclusive, "the status")
    assert objects.report == {}
    assert node.probe("readyz")[0] == 200
