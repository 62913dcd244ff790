"""The enforcer beside a real systemd that makes the cgroups, as process 1 of the machine.

Not collected on the host: test_in_virtual_machine.py runs this with two CPUs.
"""

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator, Mapping
from functools import partial
from pathlib import Path

import pytest

from numapin_enforcer.__main__ import main
from numapin_enforcer.systemd.slices import unit_name
from numapin_lab.node.containerd import Runtime
from numapin_lab.node.played_kubelet import FIRST_ACT, Pod
from support.real.containerd import private_runtime
from support.real.enforcer_node import Node, assigned, spec
from support.real.kernel_cgroups import cpus_of, write_cpus
from support.real.systemd_kubelet import SystemdKubelet, remembered, run, set_property
from support.real.waiting import eventually

BEST_EFFORT = "kubepods.slice/kubepods-besteffort.slice"
CLASSES = ("kubepods-burstable.slice", "kubepods-besteffort.slice")
SERVICES = ("init.scope", "system.slice")


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
    """As the kubelet does with every QoS class each minute."""
    set_property(unit, f"CPUWeight={weight}")
    run("systemctl", "show", "--property=CPUWeight", unit)  # answers when that is written


async def test_systemd_is_given_the_fence_as_a_property(
    node: Node, kubelet: SystemdKubelet
) -> None:
    pod = await kubelet.run_pod("exclusive")
    cgroup = scope(pod, await kubelet.run(pod, "main"))
    wanted = spec(assigned(pod.uid, "main", "1"), shared="0")
    systemd_overwrites_a_cpuset_it_does_not_know()

    await node.start()
    status = await node.applied(wanted)
    assert status["cgroup"] == {"version": 2, "driver": "systemd"}
    assert [one["exclusive"] for one in status["containers"]] == [True]
    await eventually(
        lambda: [remembered(one) for one in CLASSES] == ["0", "0"], "the fence in systemd"
    )
    await eventually(lambda: remembered(unit_name(cgroup)) == "1", "the exclusive CPU in systemd")
    assert "systemd" not in node.condition("Ready")[2]

    await node.stop(signal.SIGKILL)
    write_cpus(cgroup, "0")  # systemd writes its own property again
    for weight, unit in enumerate((*CLASSES, unit_name(cgroup)), 3):
        kubelet_sets_a_weight(unit, weight)
    run("systemctl", "daemon-reload")
    assert (cpus_of(cgroup), cpus_of(BEST_EFFORT)) == ("1", "0")
    late = await kubelet.run_pod("late", "besteffort")
    cgroups = (*kubelet.classes, scope(late, await kubelet.run(late, "main", FIRST_ACT)))
    first_words = await eventually(partial(kubelet.output, late, "main"))
    assert first_words == "Cpus_allowed_list:\t0"

    await node.start()
    await systemd_gets_the_new_cpus_of_a_former_exclusive_container(node, cgroup)
    await node.applied({"mode": "None"})
    await eventually(lambda: free(cgroups), "all CPUs to be restored")
    await node.applied(wanted)
    await eventually(
        lambda: [remembered(one) for one in CLASSES] == ["0", "0"], "the fence in systemd"
    )
    await node.stop()
    options = [f"--{name}={node.options[name]}" for name in ("cri-socket", "state-dir")]
    await asyncio.to_thread(main, ["--release", *options])
    assert free((*cgroups, cgroup))


async def test_services_keep_off_the_cpu_of_a_container(
    node: Node, kubelet: SystemdKubelet
) -> None:
    before = {unit: remembered(unit) for unit in SERVICES}
    pod = await kubelet.run_pod("alone")
    cgroup = scope(pod, await kubelet.run(pod, "main"))
    own = assigned(pod.uid, "main", "1")
    wanted = spec(own, shared="0", system={"processes": "KeepOff"})

    await node.start()
    await node.applied(wanted)
    await eventually(lambda: kept_off(node) == {"keptOff": "1"}, "the services to be off CPU 1")
    assert [remembered(unit) for unit in SERVICES] == ["0"] * len(SERVICES)
    assert (cpus_of("system.slice"), cpus_of("init.scope"), cpus_of(cgroup)) == ("0", "0", "1")
    await node.stop(signal.SIGKILL)
    set_property("system.slice", "AllowedCPUs=0-1")
    await node.start()
    await eventually(lambda: remembered("system.slice") == "0", "the service slice to be set again")

    await node.applied(spec(own, shared="0"))
    await eventually(lambda: given_back(before), "a policy that leaves services to be followed")
    await node.applied(wanted)
    await eventually(lambda: kept_off(node) == {"keptOff": "1"}, "the services to be off CPU 1")
    await node.stop()
    options = [f"--{name}={node.options[name]}" for name in ("cri-socket", "state-dir")]
    await asyncio.to_thread(main, ["--release", *options])
    assert given_back(before)


def kept_off(node: Node) -> object:
    return (node.status.get("system") or {}).get("processes")


def given_back(before: Mapping[str, str]) -> bool:
    """Whether kernel and systemd let all services use both CPUs."""
    return {unit: remembered(unit) for unit in before} == before and {
        cpus_of(unit) for unit in before
    } == {"0-1"}


def systemd_overwrites_a_cpuset_it_does_not_know() -> None:
    """Why the fence is a property: systemd's next write to a class without pods removes it."""
    write_cpus(BEST_EFFORT, "0")
    assert cpus_of(BEST_EFFORT) == "0"
    kubelet_sets_a_weight(unit_name(BEST_EFFORT), 2)
    assert cpus_of(BEST_EFFORT) == "0-1"


async def systemd_gets_the_new_cpus_of_a_former_exclusive_container(
    node: Node, cgroup: str
) -> None:
    """Otherwise systemd would write the old set again after another container got that CPU."""
    await node.applied(spec(shared="0"))
    await eventually(lambda: remembered(unit_name(cgroup)) == "0", "the shared CPUs in systemd")
    kubelet_sets_a_weight(unit_name(cgroup), 7)
    assert cpus_of(cgroup) == "0"


def free(cgroups: tuple[str, ...]) -> bool:
    """Whether neither the kernel nor systemd has a part of the fence left."""
    return {remembered(one) for one in CLASSES} == {""} and {*map(cpus_of, cgroups)} == {"0-1"}
