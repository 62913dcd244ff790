"""Leader election on a real API server: never two leaders, and never none for long."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from numapin_client.client import ApiClient, connect
from numapin_client.login.kubeconfig import kubeconfig_login
from numapin_client.resources import LEASES, Key
from numapin_lab.controlplane.servers import ControlPlane
from numapin_operator.installation.leader_election import LeaderElector, run_elector
from numapin_operator.installation.observed_lease import LeaseTiming
from support.real.proxies.tcp_proxy import Wire, wired_client
from support.real.waiting import PATIENCE_SECONDS, eventually

FAST = LeaseTiming(lease_seconds=3.0, renew_deadline_seconds=1.5, retry_seconds=0.1)


@pytest.fixture
async def api(control_plane: ControlPlane) -> AsyncIterator[ApiClient]:
    async with connect(kubeconfig_login(str(control_plane.kubeconfig))) as client:
        yield client


@pytest.fixture
async def wired(control_plane: ControlPlane) -> AsyncIterator[tuple[Wire, ApiClient]]:
    async with wired_client(control_plane) as made:
        yield made


@pytest.fixture
def lease() -> Key:
    return Key(f"leader-{secrets.token_hex(4)}", "default")


class Overlap:
    """Counts the leaders at every turn of the event loop, and remembers the most."""

    def __init__(self, *electors: LeaderElector) -> None:
        self._electors = electors
        self.most = 0

    async def watch(self) -> None:
        while True:
            self.most = max(self.most, sum(x.leading.is_set() for x in self._electors))
            await asyncio.sleep(0.001)


async def test_of_many_candidates_exactly_one_leads_and_passes_leadership_on(
    api: ApiClient, lease: Key
) -> None:
    electors = [LeaderElector(api, lease, f"c{number}", FAST) for number in range(5)]
    overlap, order = Overlap(*electors), []
    async with asyncio.TaskGroup() as tasks:
        watching = tasks.create_task(overlap.watch(), name="overlap")
        stacks = {elector: AsyncExitStack() for elector in electors}
        for elector, stack in stacks.items():
            await stack.enter_async_context(run_elector(elector))
        while stacks:
            await eventually(lambda: any(x.leading.is_set() for x in stacks))
            [leader] = [x for x in stacks if x.leading.is_set()]
            order.append(leader)
            await stacks.pop(leader).aclose()
        watching.cancel()
    assert overlap.most == 1
    assert set(order) == set(electors)
    spec = (await api.get(LEASES, lease))["spec"]
    assert (spec.get("holderIdentity", ""), spec["leaseTransitions"]) == ("", 4)


async def test_a_killed_leader_is_followed_by_another(api: ApiClient, lease: Key) -> None:
    first, second = (LeaderElector(api, lease, name, FAST) for name in ("first", "second"))
    killed = asyncio.create_task(first.run(), name="first")
    await first.leading.wait()
    async with run_elector(second):
        killed.cancel()
        await asyncio.wait([killed])
        async with asyncio.timeout(PATIENCE_SECONDS):
            await second.leading.wait()
        assert (await api.get(LEASES, lease))["spec"]["holderIdentity"] == second.identity


@pytest.mark.parametrize("failure", ["silent", "cut"])
async def test_a_leader_cut_off_stops_before_the_next_starts(
    api: ApiClient, wired: tuple[Wire, ApiClient], lease: Key, failure: str
) -> None:
    wire, through = wired
    far, near = LeaderElector(through, lease, "far", FAST), LeaderElector(api, lease, "near", FAST)
    overlap = Overlap(far, near)
    async with asyncio.TaskGroup() as tasks, run_elector(far):
        watching = tasks.create_task(overlap.watch(), name="overlap")
        await far.leading.wait()
        async with run_elector(near):
            wire.fall_silent()
            if failure == "cut":
                wire.cut()
            async with asyncio.timeout(PATIENCE_SECONDS):
                await near.leading.wait()
            assert not far.leading.is_set()
            wire.mend()
        async with asyncio.timeout(PATIENCE_SECONDS):
            await far.leading.wait()
        watching.cancel()
    assert overlap.most == 1
