"""An exclusive container gains CPUs by an update of its runtime, which comes after older ones."""

from numapin_api.cpuset import CpuSet
from numapin_enforcer.pass_values import Converged
from numapin_enforcer.runtime.interface import CriError
from numapin_enforcer.runtime.updates.updater import GROWTH_SECONDS
from support.fakes.worlds.followed_node import CONTAINER, CPU_2, CPU_3, POD, Node, spec_of

WIDE = spec_of("2-3")


def cpus(node: Node, path: str = CONTAINER) -> str:
    return str(node.model.read_one(path).effective_cpus)


def writes(done: Converged) -> list[str]:
    return [str(one.value) for one in done.made if one.path == CONTAINER]


async def grow(node: Node) -> Converged:
    """A pass for the wide set while the runtime does not answer."""
    await node.enforce(CPU_3)
    node.runtime.may_update.clear()
    return await node.make_pass(WIDE)


async def test_the_runtime_writes_cpus_that_an_exclusive_container_gains(node: Node) -> None:
    await node.enforce(CPU_3)
    done = await node.make_pass(WIDE)
    assert writes(done) == []
    assert (cpus(node), node.sent) == ("2-3", ["3", "2-3"])
    done = await node.make_pass(WIDE)
    assert done.complete
    assert writes(done) == []


async def test_its_pod_has_them_before_and_no_status_is_published_meanwhile(node: Node) -> None:
    done = await grow(node)
    assert not done.complete
    assert "2" in {str(cpu) for cpu in node.model.read_one(POD).effective_cpus}
    assert cpus(node) == "3"
    assert node.finishes_soon()


async def test_an_older_update_of_the_kubelet_takes_away_nothing(node: Node) -> None:
    await grow(node)
    node.model.groups[CONTAINER].cpus = CpuSet([3])
    node.model.written.append(CONTAINER)
    done = await node.make_pass(WIDE)
    assert done.drifts == ()
    node.runtime.may_update.set()
    await node.clock.run_tasks()
    assert (cpus(node), node.sent) == ("2-3", ["3", "2-3"])


async def test_a_runtime_that_takes_too_long_is_not_waited_for(node: Node) -> None:
    await grow(node)
    node.clock.stand_still(GROWTH_SECONDS / 2)
    await node.make_pass(WIDE)
    assert cpus(node) == "3"
    node.clock.stand_still(GROWTH_SECONDS / 2)
    done = await node.make_pass(WIDE)
    assert (writes(done), cpus(node)) == (["2-3"], "2-3")
    assert done.complete
    assert not node.finishes_soon()


async def test_the_next_growth_is_waited_for_again(node: Node) -> None:
    await grow(node)
    node.clock.stand_still(GROWTH_SECONDS)
    await node.make_pass(WIDE)
    node.runtime.may_update.set()
    await node.make_pass(CPU_2)
    node.runtime.may_update.clear()
    await node.make_pass(WIDE)
    assert cpus(node) == "2"
    node.runtime.may_update.set()
    await node.clock.run_tasks()
    assert cpus(node) == "2-3"


async def test_a_runtime_that_refuses_is_not_waited_for(node: Node) -> None:
    await node.enforce(CPU_3)
    node.runtime.failure = CriError("no")
    await node.make_pass(WIDE)
    assert cpus(node) == "3"
    done = await node.make_pass(WIDE)
    assert (writes(done), cpus(node)) == (["2-3"], "2-3")


async def test_what_the_container_had_is_given_back_at_once(node: Node) -> None:
    await node.enforce(CPU_3)
    await node.make_pass(WIDE)
    await node.make_pass(WIDE)
    node.runtime.may_update.clear()
    node.model.groups[CONTAINER].cpus = CpuSet([3])
    node.model.written.append(CONTAINER)
    done = await node.make_pass(WIDE)
    assert (writes(done), cpus(node)) == (["2-3"], "2-3")
    assert [one.path for one in done.drifts] == [CONTAINER]
