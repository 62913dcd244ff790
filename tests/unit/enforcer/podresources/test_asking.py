"""When the kubelet is asked for devices, and which pod gets them."""

from numapin_api.schema.plain import DevicesStatus
from numapin_enforcer.podresources.asking import LOST_FOR_SECONDS
from support.fakes.kubelets.asked import ALL, GPU, GPUS, LIST, World, resources


async def test_a_node_without_devices_costs_few_questions(world: World) -> None:
    assert world.status() is None
    await world.make_pass()
    assert world.pop_asked() == [ALL]
    assert world.status() == DevicesStatus()
    for one in range(20):
        await world.run_pod(f"u{one}", f"p{one}")
        assert world.pop_asked() == []
    await world.clock.advance(59)
    assert world.pop_asked() == [ALL, ALL]
    await world.make_pass(resynced=True)
    assert world.pop_asked() == [ALL]
    assert world.runtime.asked_pods == []


async def test_only_a_change_wakes_the_loop(gpus: World) -> None:
    await gpus.make_pass(resynced=True)
    await gpus.run_pod("u1", "web")
    await gpus.clock.advance(1)
    assert not gpus.wake.is_set()
    gpus.name("u2", "gpu")
    await gpus.run_pod("u2", "gpu", GPUS[1])
    await gpus.clock.advance(1)
    assert gpus.wake.is_set()


async def test_a_new_pod_has_its_devices_at_once_when_its_sandbox_is_listed(gpus: World) -> None:
    gpus.name("u1", "a")
    await gpus.clock.advance(1)
    await gpus.run_pod("u1", "a", GPUS[1])
    assert gpus.rows == {"u1": ("g1",)}
    assert gpus.pop_asked() == [LIST]
    assert gpus.runtime.asked_pods == ["u1"]


async def test_a_sandbox_that_is_not_listed_yet_is_asked_for_again_soon(gpus: World) -> None:
    await gpus.clock.advance(1)
    gpus.pods.add("u2")
    gpus.kubelet.has("d/b", c=[])
    await gpus.run_pod("u1", "a", GPUS[0])
    await gpus.clock.advance(0.5)
    assert gpus.rows == {}, "it may be either pod's"
    found = gpus.status()
    assert found is not None
    assert [(one.pod, one.count) for one in found.unnamed] == [("a", 1)]
    assert found.unnamed_pods == ("u1", "u2")
    gpus.name("u1", "a")
    await gpus.clock.advance(0.2)
    assert gpus.rows == {"u1": ("g0",)}
    found = gpus.status()
    assert found is not None
    assert (found.unnamed, found.unnamed_pods) == ((), ())
    assert gpus.pop_asked() == [LIST]
    assert len(gpus.runtime.asked_pods) < 20


async def test_what_unnamed_pods_have_is_said_without_a_break(gpus: World) -> None:
    await gpus.run_pod("u1", "a", GPUS[0])
    await gpus.clock.advance(1)
    gpus.wake.clear()
    await gpus.make_pass(resynced=True)
    await gpus.clock.advance(1)
    assert not gpus.wake.is_set()
    gpus.pods.clear()
    await gpus.make_pass()
    found = gpus.status()
    assert found is not None
    assert (found.unnamed, found.unnamed_pods) == ((), ())


async def test_the_start_gate_names_a_pod_before_the_runtime_lists_it(gpus: World) -> None:
    await gpus.clock.advance(1)
    await gpus.run_pod("u1", "a", GPUS[0])
    gpus.asker.learn("u1", "d/a")
    await gpus.clock.run_tasks()
    assert gpus.rows == {"u1": ("g0",)}


async def test_pods_that_come_together_are_asked_for_together_and_never_too_often(
    gpus: World,
) -> None:
    await gpus.clock.advance(1)
    for one in range(50):
        gpus.name(f"u{one}", f"p{one}")
        await gpus.run_pod(f"u{one}", f"p{one}", (GPU, f"x{one}", (0,)))
        await gpus.clock.advance(0.001)
    await gpus.clock.advance(1)
    assert len(gpus.rows) == 50
    assert len(gpus.pop_asked()) <= 3
    assert gpus.message is None


async def test_rows_go_with_their_pod(gpus: World) -> None:
    gpus.name("u1", "a")
    await gpus.run_pod("u1", "a", GPUS[0])
    await gpus.clock.advance(1)
    assert gpus.rows == {"u1": ("g0",)}
    gpus.kubelet.deletes("d/a")
    gpus.pods.clear()
    await gpus.make_pass()
    assert gpus.rows == {}


async def test_a_pod_that_was_created_again_gets_its_own_devices(gpus: World) -> None:
    gpus.name("old", "a")
    await gpus.run_pod("old", "a", GPUS[0])
    await gpus.clock.advance(1)
    gpus.kubelet.deletes("d/a")
    gpus.name("new", "a")
    await gpus.run_pod("new", "a", GPUS[1])
    await gpus.clock.advance(1)
    assert gpus.rows == {"old": ("g0",)}
    gpus.pods.discard("old")
    await gpus.make_pass()
    await gpus.clock.advance(1)
    assert gpus.rows == {"new": ("g1",)}


async def test_a_device_plugin_that_registers_later_is_found(world: World) -> None:
    await world.run_pod("plugin", "plugin")
    world.kubelet.devices = list(GPUS)
    await world.clock.advance(4)
    assert [one.count for one in resources(world)] == [1, 1]


async def test_an_unhealthy_device_and_a_plugin_that_is_gone_are_seen(gpus: World) -> None:
    gpus.name("u1", "a")
    await gpus.run_pod("u1", "a", GPUS[0])
    await gpus.clock.advance(20)
    gpus.kubelet.devices = [GPUS[0]]
    await gpus.make_pass(resynced=True)
    await gpus.clock.advance(1)
    assert [str(one.numa_nodes) for one in resources(gpus)] == ["0"]
    gpus.kubelet.devices = []
    await gpus.make_pass(resynced=True)
    await gpus.clock.advance(1)
    assert resources(gpus) == ()
    assert gpus.rows == {"u1": ("g0",)}


async def test_a_plugin_that_comes_back_is_found_within_a_second(gpus: World) -> None:
    gpus.kubelet.devices = []
    await gpus.make_pass(resynced=True)
    await gpus.clock.advance(100)
    gpus.kubelet.devices = list(GPUS)
    await gpus.clock.advance(1.1)
    assert len(resources(gpus)) == 2


async def test_a_plugin_that_stays_away_is_not_looked_for_for_ever(gpus: World) -> None:
    gpus.kubelet.devices = []
    await gpus.make_pass(resynced=True)
    await gpus.clock.advance(LOST_FOR_SECONDS + 2)
    gpus.pop_asked()
    await gpus.clock.advance(100)
    assert gpus.pop_asked() == []


async def test_nothing_is_asked_or_said_while_no_assignment_is_enforced(gpus: World) -> None:
    gpus.asker.rest()
    await gpus.clock.advance(400)
    assert gpus.pop_asked() == []
    assert gpus.status() is None
    await gpus.make_pass()
    assert gpus.status() is not None
