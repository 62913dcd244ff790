"""The enforcer's role grants what the enforcer calls, and no more: seen in the audit log."""

import asyncio

import pytest

from numapin_api.names import ENFORCER_SERVICE_ACCOUNT
from numapin_client.client import connect
from numapin_client.login.kubeconfig import kubeconfig_login
from numapin_enforcer.assignment.watch import LOOK_SECONDS, AssignmentWatch
from numapin_lab.controlplane.servers import ControlPlane
from numapin_lab.node.played_kubelet import Kubelet
from support.fakes.manual_clock import ManualClock
from support.real.audit import Audit, granted
from support.real.enforcer_node import PATH, Node, assigned, spec
from support.real.kernel_cgroups import cpus_of, write_cpus
from support.real.reporting.own_objects import OwnObjects
from support.real.waiting import eventually, running


@pytest.fixture
def audit(contract: ControlPlane) -> Audit:
    return Audit(contract, ENFORCER_SERVICE_ACCOUNT)


async def confirm_absence(node: Node) -> None:
    """What the enforcer does when its NodeAssignment has been missing for a minute."""
    clock, login = ManualClock(), kubeconfig_login(node.options["kubeconfig"])
    async with connect(login, user_agent="numapin-enforcer") as api:
        watch = AssignmentWatch(api, node.name, lambda _: None, asyncio.Event(), clock)

        async def gone() -> bool:
            await clock.advance(LOOK_SECONDS)
            return watch.gone

        async with running(watch.run()):
            await eventually(gone)


async def test_the_role_grants_what_is_used_and_no_more(
    audit: Audit, node: Node, kubelet: Kubelet, contract: ControlPlane
) -> None:
    pod = await kubelet.run_pod("exclusive")
    cgroup = f"{pod.cgroup}/{await kubelet.run(pod, 'main')}"
    await node.start()
    await node.applied(spec(assigned(pod.uid, "main", "1"), shared="0"))
    objects = OwnObjects(node, contract)
    objects.create()
    await eventually(lambda: objects.report and objects.topology, "the report and the hardware")
    write_cpus(cgroup, "0")
    await eventually(lambda: cpus_of(cgroup) == "1")
    await eventually(lambda: node.notes("CpusetDrift"), "the Event")
    await eventually(lambda: ("coordination.k8s.io", "leases", "create") in audit.used(), "a Lease")
    await node.stop()
    node.api.request("DELETE", f"{PATH}/{node.name}")
    await confirm_absence(node)
    rights = granted("base/enforcer-rbac.yaml")
    assert audit.used() - rights == set(), "forbidden"
    assert rights - audit.used() == set(), "never used"
    assert audit.forbidden() == []
