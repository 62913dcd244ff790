"""What `numapin-operator --check` says of an installation."""

import asyncio
import logging

import pytest

from numapin_client.client import ApiClient
from numapin_client.resources import LEASES, PODS, Json, Key
from numapin_operator.installation.check import PATIENCE_SECONDS, InstallationCheck
from numapin_operator.installation.leader_election import LeaderElector
from numapin_operator.installation.leadership import Leadership
from support.fakes.apiserver import FakeApiServer
from support.fakes.apiserver_answers import Answer
from support.fakes.manual_clock import ManualClock
from support.real.waiting import running

NAMESPACE = "numapin-system"
LEASE = Key("numapin-operator", NAMESPACE)
EVERY_POD = ("operator", "operator", "enforcer", "standby")


def put_pod(
    server: FakeApiServer, component: str, name: str = "", *, ready: bool = True, **metadata: str
) -> None:
    """A pod of numapin, with what its kubelet says."""
    labels = {"app.kubernetes.io/name": "numapin", "app.kubernetes.io/component": component}
    body: Json = {
        "metadata": {"name": name or component, "namespace": NAMESPACE, "labels": labels}
        | metadata,
        "spec": {"nodeName": "node-1"},
        "status": {"conditions": [{"type": "Ready", "status": str(ready)}]},
    }
    server.put(PODS, body)


class Checked:
    """A check under way, and an operator that renews its Lease if the test says so."""

    def __init__(self, api: ApiClient, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.INFO)
        self.clock, self._caplog = ManualClock(), caplog
        self.leader = LeaderElector(api, LEASE, "pod", leadership=Leadership(self.clock))
        self.check = InstallationCheck(api, NAMESPACE, self.clock)
        self.works: bool | None = None

    async def run(self) -> None:
        self.works = await self.check.run()

    async def until_it_ends(self) -> bool:
        """Let time pass until it ends; returns what it found."""
        while self.works is None:
            await self.clock.advance(1)
            await asyncio.sleep(0)
        return self.works

    def problems(self) -> list[str]:
        """What was logged, in order."""
        return [str(vars(one)["problem"]) for one in self._caplog.records if "problem" in vars(one)]


@pytest.fixture
async def checked(api: ApiClient, caplog: pytest.LogCaptureFixture) -> Checked:
    return Checked(api, caplog)


async def test_an_installation_that_works(server: FakeApiServer, checked: Checked) -> None:
    for number, component in enumerate(EVERY_POD):
        put_pod(server, component, f"{component}-{number}")
    put_pod(server, "enforcer", "leaves", ready=False, deletionTimestamp="2026-01-01T00:00:00Z")
    await checked.leader.attempt()
    async with running(checked.run()):
        await checked.clock.until(checked.problems)
        assert checked.problems() == [f"{checked.leader.identity} has not renewed its Lease yet"]
        await checked.leader.attempt()
        assert await checked.until_it_ends()


@pytest.mark.parametrize("has_lease", [True, False])
async def test_what_does_not_work_is_said_at_once_and_at_the_end(
    server: FakeApiServer, checked: Checked, has_lease: bool
) -> None:
    put_pod(server, "operator")
    put_pod(server, "enforcer", ready=False)
    if has_lease:
        server.put(LEASES, {"metadata": {"name": LEASE.name, "namespace": NAMESPACE}, "spec": {}})
    wrong = [
        "the pod enforcer (node-1) is not ready: kubectl describe it, and see its log",
        "there is no pod of the standby: kubectl describe its DaemonSet",
        "no operator leads: see their logs",
    ]
    async with running(checked.run()):
        await checked.clock.until(checked.problems)
        assert checked.problems() == wrong
        assert not await checked.until_it_ends()
    assert checked.problems() == [*wrong, *wrong], "each once, and all at the end"
    assert checked.clock.monotonic() >= PATIENCE_SECONDS


async def test_an_answer_that_refuses_is_shown(server: FakeApiServer, checked: Checked) -> None:
    text = b'{"kind": "Status", "message": "cpupolicies is forbidden: no"}'
    server.answers = [Answer(403, body=text)] * 1_000
    async with running(checked.run()):
        assert not await checked.until_it_ends()
    assert "cpupolicies is forbidden" in checked.problems()[0]
