"""Two operators as processes: one writes, the other stands by."""

from pathlib import Path

import pytest

from numapin_api import names
from numapin_client.login.kubeconfig import kubeconfig_login
from numapin_client.resources import LEASES, Json, Key
from support.real.operators.operator_process import OperatorProcess, until
from support.real.operators.operator_world import RealWorld
from support.real.proxies.holding_proxy import holding_proxy

LEASE = Key(names.LEADER_LEASE, names.NAMESPACE)


async def lease_spec(world: RealWorld) -> Json:
    spec: Json = (await world.admin.get(LEASES, LEASE))["spec"]
    return spec


def leads(operator: OperatorProcess) -> bool:
    """Whether its last line about the lead says that it leads."""
    said = [line for line in operator.log.read_text().splitlines() if "leading" in line]
    return bool(said) and "no longer" not in said[-1]


@pytest.mark.parametrize("end", ["stop", "kill"])
async def test_the_other_operator_takes_over_when_the_leader_ends(
    world: RealWorld, tmp_path: Path, end: str
) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    first, second = (
        OperatorProcess(world.operator_kubeconfig, tmp_path / name, hasty=True)
        for name in ("first", "second")
    )
    try:
        await first.start("--leader-elect")
        await until(lambda: leads(first), first.log)
        await second.start("--leader-elect")
        await world.put_policy({"reserved": {"count": 2}}, "policy")
        node = (await world.add_node("before")).name
        await until(lambda: world.spec(node), first.log)
        before = await lease_spec(world)

        await (first.stop() if end == "stop" else first.kill())
        node = (await world.add_node("after")).name
        await until(lambda: world.spec(node), second.log)
        after = await lease_spec(world)
        assert leads(second)
        assert after["holderIdentity"] not in ("", before["holderIdentity"])
        assert after["leaseTransitions"] == before["leaseTransitions"] + 1
    finally:
        await first.kill()
        await second.stop()


async def test_a_new_leader_whose_watches_are_late_takes_nothing_for_gone(
    world: RealWorld, tmp_path: Path
) -> None:
    """A node and a pod that it has not seen: their predecessor's assignment stays as it is."""
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    first = OperatorProcess(world.operator_kubeconfig, tmp_path / "first", hasty=True)
    async with holding_proxy(kubeconfig_login(str(world.operator_kubeconfig))) as proxy:
        kubeconfig = proxy.kubeconfig(tmp_path / "second")
        second = OperatorProcess(kubeconfig, tmp_path / "second", hasty=True)
        try:
            await first.start("--leader-elect")
            await until(lambda: leads(first), first.log)
            await second.start("--leader-elect")
            proxy.hold("nodes", "pods")
            await world.put_policy({"reserved": {"count": 2}}, "policy")
            node = (await world.add_node("unseen")).name
            await until(lambda: world.spec(node), first.log)
            await world.enforce(node)
            await world.add_pod(node, "a")
            await until(lambda: world.held(node), first.log)
            before = await world.assignment(node)

            await first.stop()
            await until(lambda: "writing begins" in second.log.read_text(), second.log)
            after = await world.assignment(node)
            assert after["metadata"]["uid"] == before["metadata"]["uid"]
            assert (await world.held(node))["a"] == "2-3"
            assert "deleted an assignment" not in second.log.read_text()
        finally:
            await first.kill()
            await second.stop()
