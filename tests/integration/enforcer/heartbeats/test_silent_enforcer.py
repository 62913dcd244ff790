"""A real enforcer that is killed is marked Unknown soon, and its next report clears it."""

import asyncio
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from numapin_api.names import NAMESPACE, OPERATOR_SERVICE_ACCOUNT
from numapin_client.client import connect
from numapin_client.login.kubeconfig import kubeconfig_login
from numapin_client.resources import Key
from numapin_daemon.clock import SystemClock
from numapin_enforcer.status.node_lease import RENEW_SECONDS, NodeLease
from numapin_lab.controlplane.servers import ControlPlane
from numapin_lab.controlplane.service_accounts import ServiceAccount, log_in
from numapin_operator.heartbeats.marker import Marker
from numapin_operator.heartbeats.watcher import Watcher, lease_informer
from support.real.enforcer_node import PATH, Node, spec
from support.real.waiting import eventually, running
from support.suite.left_out import before_release
from support.values.operator import REPORTER

LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
GOAL_SECONDS = 60.0


def lease_of(node: Node) -> list[dict[str, Any]]:
    """The node's Lease, once there is one."""
    listed = node.api.get(LEASES)["items"]
    return [one for one in listed if one["metadata"]["name"] == node.name]


@pytest.fixture
async def watched(contract: ControlPlane, tmp_path: Path) -> AsyncIterator[None]:
    """The part of the operator that watches Leases, and another node whose enforcer lives."""
    account = ServiceAccount(NAMESPACE, OPERATOR_SERVICE_ACCOUNT)
    login = kubeconfig_login(str(log_in(contract, account, tmp_path / "operator")))
    admin = kubeconfig_login(str(contract.kubeconfig))
    async with connect(login, user_agent="numapin-operator") as api, connect(admin) as direct:
        leases, clock = lease_informer(api, NAMESPACE), SystemClock()
        watcher = Watcher(leases, Marker(api, NAMESPACE, REPORTER, clock), clock)
        body = {"metadata": {"name": "witness", "uid": "0-witness"}}
        witness = NodeLease(direct, Key("witness", NAMESPACE), lambda: False, lambda: body)
        async with running(leases.run()), running(watcher.run()), running(witness.run()):
            yield


@before_release
async def test_a_killed_enforcer_is_unknown_within_a_minute(node: Node, watched: None) -> None:
    await node.start()
    await node.applied(spec())
    await eventually(lambda: lease_of(node), "the Lease")
    await asyncio.sleep(RENEW_SECONDS + 5)  # the leader's first seconds are nobody's silence
    (lease,) = lease_of(node)
    (owner,) = lease["metadata"]["ownerReferences"]
    assert owner["uid"] == node.object["metadata"]["uid"]
    status = node.status
    await node.stop(signal.SIGKILL)
    killed = time.monotonic()
    await eventually(lambda: node.condition("Ready")[0] == "Unknown", "the mark")
    print(f"marked {time.monotonic() - killed:.1f} s after the kill")
    assert node.condition("Ready")[1] == "EnforcerUnknown"
    assert lease["spec"]["renewTime"][:10] in node.condition("Ready")[2]
    assert time.monotonic() - killed < GOAL_SECONDS + 22, "the witness renews each 22 s at most"
    changed = ("conditions", "lastPassTime")
    assert {key: one for key, one in node.status.items() if key not in changed} == {
        key: one for key, one in status.items() if key not in changed
    }
    await eventually(lambda: len(node.notes("EnforcerUnknown")) == 1, "the Event")
    await node.start()
    await eventually(lambda: node.condition("Ready")[0] == "True", "the next report")
    node.api.request("DELETE", f"{PATH}/{node.name}")
