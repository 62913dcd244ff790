"""Two installations in one cluster, from the manifests: one leads, the other says what to do."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from numapin_api import names
from numapin_client.client import connect
from numapin_client.errors import ForbiddenError
from numapin_client.login.kubeconfig import kubeconfig_login
from numapin_client.resources import LEASES, Json, Key
from numapin_lab.controlplane.servers import ControlPlane
from numapin_lab.controlplane.service_accounts import ServiceAccount, log_in
from numapin_lab.processes.ports import choose
from support.real.operators.operator_process import OperatorProcess, probe, until
from support.real.operators.operator_world import RealWorld

ROOT = Path(__file__).parents[3]
ELSEWHERE = "elsewhere"
OTHER_LEADS = "the operator of another installation leads, in the namespace"
REMEDY = "delete the namespace of the one that you do not want"


@pytest.fixture(scope="module")
def installed_plane(breakable_plane: ControlPlane) -> ControlPlane:
    """A control plane of its own: the second installation changes the first one's roles."""
    return breakable_plane


def apply_second(plane: ControlPlane, folder: Path, prefix: str = "") -> Path:
    """Install once more in another namespace, as an administrator does; returns the login."""
    overlay = folder / "second"
    overlay.mkdir(exist_ok=True)
    base = os.path.relpath(ROOT / "manifests" / "overlays" / "default", overlay)
    text = f"resources: [{base}]\nnamespace: {ELSEWHERE}\n"
    (overlay / "kustomization.yaml").write_text(text + f"namePrefix: {prefix}\n" * bool(prefix))
    plane.kubectl("apply", "--server-side", "--force-conflicts", "-k", str(overlay))
    account = ServiceAccount(ELSEWHERE, f"{prefix}{names.OPERATOR_SERVICE_ACCOUNT}")
    return log_in(plane, account, folder / "login")


def apply_first_again(plane: ControlPlane) -> None:
    """Give the first installation its roles back."""
    default = ROOT / "manifests" / "overlays" / "default"
    plane.kubectl("apply", "--server-side", "--force-conflicts", "-k", str(default))


def logged_at(log: Path, text: str) -> str:
    """The time of the first line with this text, which sorts as a text."""
    return next(line for line in log.read_text().splitlines() if text in line).split()[0]


@pytest.fixture
async def first(world: RealWorld, tmp_path: Path) -> AsyncIterator[OperatorProcess]:
    """The first installation's operator, leading."""
    folder = tmp_path / "first"
    folder.mkdir()
    operator = OperatorProcess(world.operator_kubeconfig, folder, hasty=True)
    await operator.start("--leader-elect")
    await until(lambda: "writing begins" in operator.log.read_text(), operator.log)
    yield operator
    await operator.stop()


async def test_the_second_one_waits_and_says_so_and_leads_when_the_first_one_is_removed(
    world: RealWorld, first: OperatorProcess, tmp_path: Path
) -> None:
    kubeconfig = await asyncio.to_thread(apply_second, world.plane, tmp_path, "second-")
    second, (port,) = OperatorProcess(kubeconfig, tmp_path, hasty=True), choose(1)
    page = f"http://127.0.0.1:{port}/readyz"

    async def says(status: int, *words: str) -> bool:
        found, text = await probe(page)
        return found == status and all(word in text for word in words)

    try:
        await second.start(
            "--leader-elect", f"--namespace={ELSEWHERE}", f"--health-address=127.0.0.1:{port}"
        )
        await until(lambda: says(503, OTHER_LEADS, names.NAMESPACE, REMEDY), second.log)
        reason = f"{OTHER_LEADS} {names.NAMESPACE}"

        def last_line_says() -> bool:
            last_line = second.log.read_text().splitlines()[-1]
            return reason in last_line and REMEDY in last_line

        await until(last_line_says, second.log)
        await world.put_policy({"reserved": {"count": 2}}, "policy")
        node = (await world.add_node("node")).name
        await until(lambda: world.spec(node), first.log)
        assert "writing begins" not in second.log.read_text()

        await first.stop()
        await until(lambda: says(200), second.log)
        node = (await world.add_node("after")).name
        await until(lambda: world.spec(node), second.log)
    finally:
        assert await second.stop() == 0, second.log.read_text()[-4000:]


async def test_the_one_whose_role_was_taken_away_says_so_and_ends_its_term_before_the_other_begins(
    world: RealWorld, first: OperatorProcess, tmp_path: Path
) -> None:
    """Without a prefix the cluster roles belong to the installation that was applied last.

    The Lease that the first one may no longer renew expires.
    """
    kubeconfig = await asyncio.to_thread(apply_second, world.plane, tmp_path)
    second = OperatorProcess(kubeconfig, tmp_path, hasty=True)
    try:
        await second.start("--leader-elect", f"--namespace={ELSEWHERE}")
        await until(lambda: f"{OTHER_LEADS} {names.NAMESPACE}" in second.log.read_text())
        await until(lambda: "the role lacks this right" in first.log.read_text(), first.log)
        await until(lambda: "writing begins" in second.log.read_text(), second.log)
        assert logged_at(first.log, "no longer leading") < logged_at(second.log, ": leading")
    finally:
        await second.stop()
        apply_first_again(world.plane)


async def test_an_operator_that_may_not_renew_its_lease_names_the_right_that_it_lacks(
    world: RealWorld, first: OperatorProcess
) -> None:
    """The admission policy asks for a right of another kind than the Lease's."""
    role = world.plane.kubectl.get("clusterrole", names.OPERATOR_SERVICE_ACCOUNT)
    for rule in role["rules"]:
        if rule["resources"] == ["nodeassignments"]:
            rule["verbs"].remove("update")
    try:
        world.plane.kubectl("replace", "-f", "-", text=json.dumps(role))
        wanted = "its role lacks the right to update nodeassignments: apply the manifests"
        await until(lambda: wanted in first.log.read_text(), first.log)
    finally:
        apply_first_again(world.plane)


async def test_a_tenant_cannot_pretend_to_be_another_installation(
    world: RealWorld, tmp_path: Path
) -> None:
    kubectl, tenant = world.plane.kubectl, world.name("tenant")
    kubectl("create", "namespace", tenant)
    kubectl("-n", tenant, "create", "serviceaccount", names.OPERATOR_SERVICE_ACCOUNT)
    account = f"{tenant}:{names.OPERATOR_SERVICE_ACCOUNT}"
    rights = ("--verb=*", "--resource=leases.coordination.k8s.io")
    kubectl("-n", tenant, "create", "role", "all", *rights)
    binding = ("rolebinding", "all", "--role=all", f"--serviceaccount={account}")
    kubectl("-n", tenant, "create", *binding)
    service_account = ServiceAccount(tenant, names.OPERATOR_SERVICE_ACCOUNT)
    login = kubeconfig_login(str(log_in(world.plane, service_account, tmp_path / "tenant")))
    async with connect(login) as api:
        await api.create(LEASES, lease(Key("my-own", tenant)))
        with pytest.raises(ForbiddenError, match="only an operator of numapin may write"):
            await api.create(LEASES, lease(Key(names.LEADER_LEASE, tenant)))
        there = await world.admin.create(LEASES, lease(Key(names.LEADER_LEASE, tenant)))
        with pytest.raises(ForbiddenError, match="only an operator of numapin may write"):
            await api.update(LEASES, there)
    kubectl("delete", "namespace", tenant, "--wait=false")
    await world.admin.delete(LEASES, Key(names.LEADER_LEASE, tenant))


def lease(key: Key) -> Json:
    """A Lease that somebody holds."""
    spec = {"holderIdentity": "somebody", "leaseDurationSeconds": 3600}
    return {"metadata": {"name": key.name, "namespace": key.namespace}, "spec": spec}
