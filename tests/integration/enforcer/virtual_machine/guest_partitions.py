"""Exclusive containers as cpuset partitions, on a kernel that makes them: four CPUs, cgroup v2.

Not collected on the host: test_in_virtual_machine.py runs this.
"""

import random
import signal
from collections.abc import Iterator

import pytest

from numapin_api.cpuset import CpuSet
from numapin_enforcer.partitions.files import KernelPartitions, read_states
from numapin_enforcer.partitions.plan import (
    File,
    PartitionWrite,
    State,
    ancestors,
    plan_partitions,
)
from numapin_enforcer.runtime.generated import cri_v1_pb2 as pb
from numapin_lab.node.containerd import Runtime
from numapin_lab.node.played_kubelet import Kubelet, Pod, make_cgroup
from support.fakes.kernels.partitions import PartitionModel
from support.real.cgroups import RealCgroups, online_cpus
from support.real.enforcer_node import Node, assigned, spec
from support.real.host.neighbours import Sampler, busy_on_the_host, new_guaranteed_pod
from support.real.kernel_cgroups import CPUSET, cpus_of, write_cpus
from support.real.waiting import eventually

KIND, EXCLUSIVE = "cpuset.cpus.partition", "cpuset.cpus.exclusive"
PRINT_CPUS = ("grep", "Cpus_allowed_list", "/proc/self/status")
NEW_PODS = 100
ROUNDS, FOREIGN = 60, 0.3


def said(cgroup: str, file: str) -> str:
    """A file of a cgroup; the root cgroup is the empty path."""
    return (CPUSET / cgroup / file).read_text().strip()


def write(cgroup: str, file: str, text: str) -> None:
    (CPUSET / cgroup / file).write_text(f"{text}\n")


def partition(cgroup: str) -> tuple[str, str, str]:
    return said(cgroup, KIND), said(cgroup, EXCLUSIVE), cpus_of(cgroup)


def untouched(kubelet: Kubelet) -> bool:
    """Whether no cgroup of the node has anything of a partition."""
    top = CPUSET / kubelet.kubepods
    files = [one for one in top.rglob(EXCLUSIVE) if one.read_text().strip()]
    kinds = [one for one in top.rglob(KIND) if one.read_text().strip() != "member"]
    return not files and not kinds and cpus_of("") == "0-3"


@pytest.fixture(autouse=True)
def no_partition_is_left(containerd: Runtime) -> Iterator[None]:
    """What a test leaves in cgroups would keep CPUs from the next one's."""
    yield
    top = CPUSET / containerd.cgroup.path
    for folder in sorted({top, *(one.parent for one in top.rglob(KIND))}, reverse=True):
        (folder / KIND).write_text("member\n")
        (folder / EXCLUSIVE).write_text("\n")


@pytest.fixture
async def exclusive(node: Node, kubelet: Kubelet) -> tuple[Pod, str]:
    """A pod whose container has the CPUs 2-3 as a partition; and that container's cgroup."""
    pod = await kubelet.run_pod("exclusive")
    container_id = await kubelet.run(pod, "main")  # idle CPUs are what the scheduler looks for
    await node.start()
    await node.applied(spec(assigned(pod.uid, "main", "2-3"), shared="0-1", isolation="Partition"))
    cgroup = f"{pod.cgroup}/{container_id}"
    await eventually(lambda: partition(cgroup) == ("root", "2-3", "2-3"), "the partition")
    await eventually(node.reports_exclusive, "the container to be reported exclusive")
    await kubelet.until_remembered(container_id, "2-3")
    return pod, cgroup


async def test_new_guaranteed_pods_are_off_a_partition_while_enforcer_and_standby_are_dead(
    node: Node, kubelet: Kubelet, exclusive: tuple[Pod, str]
) -> None:
    pod, cgroup = exclusive
    standby = await node.stand_by()
    await node.stop(signal.SIGKILL)
    standby.kill()
    standby.wait()
    with (
        busy_on_the_host(),
        Sampler(cgroup, CpuSet((2, 3))).sampling() as sampler,
    ):
        found = [new_guaranteed_pod(kubelet, number) for number in range(NEW_PODS)]
        new = await kubelet.run_pod("new")
        await kubelet.run(new, "main", PRINT_CPUS)
        words = str(await eventually(lambda: kubelet.output(new, "main"))).split()
        sidecar = await kubelet.run(pod, "sidecar")
    assert set(found) == {("0-1", "0-1", "0-1")}
    assert words[-1] == "0-1"
    assert cpus_of(f"{pod.cgroup}/{sidecar}") == "0-1"
    assert sampler.samples
    assert sampler.found == set()
    assert partition(cgroup) == ("root", "2-3", "2-3")
    await node.start()
    await eventually(node.in_force)
    assert said(new.cgroup, "cpuset.cpus") == "0-1"
    assert cpus_of(new.cgroup) == "0-1"


async def test_a_partition_outlives_what_others_write_and_is_made_again(
    node: Node, kubelet: Kubelet, exclusive: tuple[Pod, str]
) -> None:
    _, cgroup = exclusive
    assert node.status["isolation"] == {"partitions": "2-3", "isolated": ""}
    id_ = cgroup.rpartition("/")[2]
    await kubelet.update(id_, pb.LinuxContainerResources(cpuset_cpus="0-3", cpu_shares=512))
    assert partition(cgroup) == ("root", "2-3", "2-3")
    await eventually(lambda: said(cgroup, "cpuset.cpus") == "2-3", "the cpuset to be set again")
    before = node.status["driftCauses"].get("Partition", 0)
    write(cgroup, KIND, "member")
    await eventually(lambda: partition(cgroup) == ("root", "2-3", "2-3"), "the partition again")
    await eventually(lambda: node.status["driftCauses"].get("Partition", 0) > before)
    new = await kubelet.run_pod("new")
    await eventually(lambda: said(new.cgroup, "cpuset.cpus") == "0-1", "a set of its own")
    write_cpus(new.cgroup, "0-3")
    assert cpus_of(new.cgroup) == "0-1"
    await eventually(lambda: said(new.cgroup, "cpuset.cpus") == "0-1", "its own set again")
    await eventually(node.in_force)


async def test_cpus_of_partitions_grow_shrink_and_move(
    node: Node, kubelet: Kubelet, exclusive: tuple[Pod, str]
) -> None:
    pod, cgroup = exclusive
    other = await kubelet.run_pod("other")
    second = f"{other.cgroup}/{await kubelet.run(other, 'main')}"

    async def moved(first_cpus: str, second_cpus: str, shared: str) -> None:
        one, two = (
            assigned(uid, "main", cpus)
            for uid, cpus in ((pod.uid, first_cpus), (other.uid, second_cpus))
        )
        await node.applied(spec(one, two, shared=shared, isolation="Partition"))
        for path, cpus in ((cgroup, first_cpus), (second, second_cpus)):
            await eventually(lambda: partition(path) == ("root", cpus, cpus))  # noqa: B023
        assert cpus_of("") == shared

    await moved("2", "3", "0-1")
    await moved("3", "2", "0-1")
    await moved("1,3", "2", "0")
    await moved("1", "3", "0,2")
    await moved("2-3", "1", "0")
    await node.applied(spec(assigned(pod.uid, "main", "2-3"), shared="0-1", isolation="Partition"))
    await eventually(lambda: partition(second) == ("member", "", "0-1"))
    assert partition(cgroup) == ("root", "2-3", "2-3")


async def test_all_is_as_before_without_partitions_and_after_a_release(
    node: Node, kubelet: Kubelet, exclusive: tuple[Pod, str]
) -> None:
    pod, cgroup = exclusive
    entry = assigned(pod.uid, "main", "2-3")
    await node.applied(spec(entry, shared="0-1"))
    await eventually(lambda: untouched(kubelet), "partitions to end")
    assert said(cgroup, "cpuset.cpus") == "2-3"
    assert "isolation" not in node.status
    await node.applied(spec(entry, shared="0-1", isolation="IsolatedPartition"))
    await eventually(lambda: node.status.get("isolation", {}).get("isolated") == "2-3")
    assert partition(cgroup) == ("isolated", "2-3", "2-3")
    await node.stop(signal.SIGKILL)
    await node.start()
    await eventually(node.in_force)
    assert partition(cgroup) == ("isolated", "2-3", "2-3")
    await node.applied({"mode": "None"})
    await eventually(lambda: untouched(kubelet), "the release")
    await node.applied(spec(entry, shared="0-1", isolation="Partition"))
    await eventually(lambda: partition(cgroup) == ("root", "2-3", "2-3"))
    await node.stop(signal.SIGKILL)
    node.launch(["--release", *(f"--{name}={value}" for name, value in node.options.items())])
    await eventually(node.ended)
    assert node.process is not None
    assert node.process.returncode == 0, node.log
    assert untouched(kubelet)


async def test_a_refused_partition_is_reported_and_stays_a_cpuset(
    node: Node, kubelet: Kubelet
) -> None:
    """An administrator's own value in a file of kubepods is restored, too."""
    pod = await kubelet.run_pod("exclusive")
    cgroup = f"{pod.cgroup}/{await kubelet.run(pod, 'main')}"
    write(kubelet.kubepods, EXCLUSIVE, "1")
    without = ("setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin")
    await node.start(without)
    node.assign(spec(assigned(pod.uid, "main", "2-3"), shared="0-1", isolation="Partition"))
    await eventually(lambda: node.condition("Ready")[1] == "PartitionRefused")
    message = node.condition("Ready")[2]
    assert "Enable partition not permitted" in message
    assert "CAP_SYS_ADMIN" in message
    assert partition(cgroup) == ("member", "", "2-3")
    assert node.reports_exclusive()
    assert said(kubelet.kubepods, EXCLUSIVE) == "1"
    await node.stop()
    await node.start()
    await eventually(lambda: partition(cgroup) == ("root", "2-3", "2-3"))
    assert said(kubelet.kubepods, EXCLUSIVE) == "1-3"
    await eventually(node.in_force)
    await node.applied(spec(assigned(pod.uid, "main", "2-3"), shared="0-1"))
    await eventually(lambda: said(kubelet.kubepods, EXCLUSIVE) == "1", "what was found")
    write(kubelet.kubepods, EXCLUSIVE, "")


async def test_the_cgroup_that_has_the_cpus_exclusively_is_named(
    node: Node, kubelet: Kubelet
) -> None:
    other = f"{kubelet.root}/other"
    make_cgroup(other)
    write(other, EXCLUSIVE, "3")
    pod = await kubelet.run_pod("exclusive")
    cgroup = f"{pod.cgroup}/{await kubelet.run(pod, 'main')}"
    await node.start()
    node.assign(spec(assigned(pod.uid, "main", "2-3"), shared="0-1", isolation="Partition"))
    await eventually(lambda: node.condition("Ready")[1] == "PartitionRefused")
    assert f"{other} has CPUs 3 exclusively" in node.condition("Ready")[2]
    assert partition(cgroup) == ("member", "", "2-3")


def test_the_model_of_partitions_answers_as_the_kernel_does() -> None:
    """Each write of many plans, and what others write in between."""
    rng = random.Random(37)
    with RealCgroups() as real:
        pods = [f"{real.root}/{name}" for name in ("a", "b")]
        containers = [f"{pods[0]}/1", f"{pods[0]}/2", f"{pods[1]}/3"]
        for path in (*pods, *containers):
            real.make(path)
        paths = (*sorted(ancestors(containers)), *containers)
        model, kernel = PartitionModel(online_cpus(), paths), KernelPartitions(CPUSET)
        for _ in range(ROUNDS):
            free = [1, 2, 3]
            rng.shuffle(free)
            cpus = [CpuSet(free[:2]), CpuSet(free[2:])][: rng.randrange(3)]
            kinds = rng.choices(["root", "isolated"], k=2)
            wanted = dict(zip(rng.sample(containers, 2), map(State, cpus, kinds), strict=False))
            if rng.random() < FOREIGN:
                foreign = PartitionWrite(rng.choice(containers), File.PARTITION, "member")
                model.write(foreign)
                kernel.write(foreign)
            for write in plan_partitions(dict(model.states), wanted, {}):
                model.write(write)
                kernel.write(write)
                assert read_states(kernel, paths) == model.states
                assert CpuSet.parse(cpus_of("")) == online_cpus() - model.taken()
                assert kernel.isolated() == model.isolated()
        for write in plan_partitions(dict(model.states), {}, {}):
            kernel.write(write)
