"""The enforcer beside a real systemd that makes the cgroups, as first process of the machine.

Not collected on the host: test_in_virtual_machine.py runs this with two CPUs.
"""

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path

import pytest

from numapin_enforcer.__main__ import main
from numapin_enforcer.systemd.slices import unit_name
from numapin_lab.node.containerd import Runtime
from support.real.containerd import private_runtime
from support.real.enforcer_node import Node, assigned, spec
from support.real.played_kubelet import FIRST_ACT, Pod, cpus_of, write_cpus
from support.real.systemd_kubelet import SystemdKubelet, remembered, run, set_property
from support.real.waiting import eventually

BEST_EFFORT = "kubepods.slice/kubepods-besteffort.slice"
CLASSES = ("kubepods-burstable.slice", "kubepods-besteffort.slice")


@pytest.fixture(scope="module")
def containerd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runtime]:
    with private_runtime(tmp_path_factory.mktemp("runtime"), systemd=True) as runtime:
        yield runtime


@pytest.fixture
async def kubelet(containerd: Runtime, tmp_path: Path) -> AsyncIterator[SystemdKubelet]:
    (tmp_path / "logs").mkdir()
    made = SystemdKubelet(containerd, "/", tmp_path / "logs")
    await made.start()
    yield made
    await made.stop()


def scope(pod: Pod, container_id: str) -> str:
    return f"{pod.cgroup}/cri-containerd-{container_id}.scope"


def kubelet_sets_a_weight(unit: str, weight: int) -> None:
    """As it does with every QoS class each minute."""
    set_property(unit, f"CPUWeight={weight}")
    run("systemctl", "show", "--property=CPUWeight", unit)  # answers when that is written


async def test_systemd_is_given_the_fence_as_a_property(
    node: Node, kubelet: SystemdKubelet
) -> None:
    owner = await kubelet.run_pod("owner")
    owned = scope(owner, await kubelet.run(owner, "main"))
    wanted = spec(assigned(owner.uid, "main", "1"), shared="0")
    loses_what_it_was_not_told()

    await node.start()
    status = await node.applied(wanted)
    assert status["cgroup"] == {"version": 2, "driver": "systemd"}
    assert [one["exclusive"] for one in status["containers"]] == [True]
    await eventually(lambda: [remembered(one) for one in CLASSES] == ["0", "0"], "the fence's")
    await eventually(lambda: remembered(unit_name(owned)) == "1", "the owner's record")
    assert "systemd" not in node.condition("Ready")[2]

    await node.stop(signal.SIGKILL)
    write_cpus(owned, "0")  # what systemd was told is written again
    for weight, unit in enumerate((*CLASSES, unit_name(owned)), 3):
        kubelet_sets_a_weight(unit, weight)
    run("systemctl", "daemon-reload")
    assert (cpus_of(owned), cpus_of(BEST_EFFORT)) == ("1", "0")
    newcomer = await kubelet.run_pod("newcomer", "besteffort")
    cgroups = (*kubelet.classes, scope(newcomer, await kubelet.run(newcomer, "main", FIRST_ACT)))
    first_words = await eventually(partial(kubelet.output, newcomer, "main"))
    assert first_words == "Cpus_allowed_list:\t0"

    await node.start()
    await systemd_forgets_an_owner(node, owned)
    await node.applied({"mode": "None"})
    await eventually(lambda: free(cgroups), "all to be given back")
    await node.applied(wanted)
    await eventually(lambda: [remembered(one) for one in CLASSES] == ["0", "0"], "the fence's")
    await node.stop()
    options = [f"--{name}={node.options[name]}" for name in ("cri-socket", "state-dir")]
    await asyncio.to_thread(main, ["--release", *options])
    assert free((*cgroups, owned))


def loses_what_it_was_not_told() -> None:
    """Why systemd has to be told: the fence of a class without pods goes with the next write."""
    write_cpus(BEST_EFFORT, "0")
    assert cpus_of(BEST_EFFORT) == "0"
    kubelet_sets_a_weight(unit_name(BEST_EFFORT), 2)
    assert cpus_of(BEST_EFFORT) == "0-1"


async def systemd_forgets_an_owner(node: Node, owned: str) -> None:
    """It would write the owner's set again, when somebody else has it."""
    await node.applied(spec(shared="0"))
    await eventually(lambda: remembered(unit_name(owned)) == "0", "the former owner's record")
    kubelet_sets_a_weight(unit_name(owned), 7)
    assert cpus_of(owned) == "0"


def free(cgroups: tuple[str, ...]) -> bool:
    """Whether nothing is left of a fence, neither in the kernel nor in what systemd remembers."""
    return {remembered(one) for one in CLASSES} == {""} and {*map(cpus_of, cgroups)} == {"0-1"}
