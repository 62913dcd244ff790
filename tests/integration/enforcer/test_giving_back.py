"""Mode None and --release restore every cpuset."""

from contextlib import suppress

from numapin_enforcer.runtime.generated import cri_v1_pb2 as pb
from numapin_lab.node.cgroups import MOUNTS, hierarchies
from numapin_lab.node.played_kubelet import Kubelet
from support.real.enforcer_node import Node, assigned, spec
from support.real.kernel_cgroups import CPUSET, cpus_of, write_cpus
from support.real.waiting import eventually


def sets(kubelet: Kubelet) -> dict[str, str]:
    """The cpuset of every cgroup below kubepods."""
    root = CPUSET / kubelet.kubepods
    folders = [root, *(path for path in root.rglob("*") if path.is_dir())]
    return {str(path): cpus_of(str(path.relative_to(CPUSET))) for path in folders}


async def test_mode_none_restores_every_cpuset_once(node: Node, kubelet: Kubelet) -> None:
    exclusive, other = (
        await kubelet.run_pod("exclusive"),
        await kubelet.run_pod("other", "besteffort"),
    )
    await kubelet.run(exclusive, "main")
    other_id = await kubelet.run(other, "main")
    before = sets(kubelet)
    await node.start()
    await node.applied(spec(assigned(exclusive.uid, "main", "1"), shared="0"))
    assert sets(kubelet) != before
    status = await node.applied({"mode": "None"})
    assert sets(kubelet) == before
    assert status["containers"] == []
    assert "pools" not in status
    # While it runs, the release goes on until the runtime has acknowledged it.
    await node.stop()
    write_cpus(f"{other.cgroup}/{other_id}", "1")
    await node.start()
    await eventually(lambda: node.probe("readyz")[0] == 200)
    assert cpus_of(f"{other.cgroup}/{other_id}") == "1"


async def test_mode_none_from_the_start_touches_nothing(node: Node, kubelet: Kubelet) -> None:
    pod = await kubelet.run_pod("hand-pinned")
    cgroup = f"{pod.cgroup}/{await kubelet.run(pod, 'main')}"
    write_cpus(cgroup, "1")
    await node.start()
    await node.applied({"mode": "None"})
    assert cpus_of(cgroup) == "1"


async def test_release_restores_every_cpuset_and_reports_it(node: Node, kubelet: Kubelet) -> None:
    exclusive, other = (
        await kubelet.run_pod("exclusive"),
        await kubelet.run_pod("other", "burstable"),
    )
    exclusive_id = await kubelet.run(exclusive, "main")
    await kubelet.run(other, "main")
    before = sets(kubelet)
    await node.start()
    await node.applied(spec(assigned(exclusive.uid, "main", "1"), shared="0"))
    await node.stop()
    node.launch(["--release", *(f"--{name}={value}" for name, value in node.options.items())])
    await eventually(node.ended)
    assert node.process is not None
    assert node.process.returncode == 0, node.log
    assert sets(kubelet) == before
    assert f"released cgroup={exclusive.cgroup}/{exclusive_id} had=1 has=0-1" in node.log
    await kubelet.update(exclusive_id, pb.LinuxContainerResources(cpu_shares=512))
    assert sets(kubelet) == before


async def test_release_without_cgroups_succeeds(node: Node, kubelet: Kubelet) -> None:
    options = {**node.options, "cgroup-root": f"{kubelet.root}/none"}
    node.launch(["--release", *(f"--{name}={value}" for name, value in options.items())])
    await eventually(node.ended)
    assert node.process is not None
    assert node.process.returncode == 0, node.log
    assert "there is nothing to release" in node.log


def contents(kubelet: Kubelet) -> dict[str, str]:
    """What every file of every cgroup below kubepods says, in each hierarchy that has them."""
    found: dict[str, str] = {}
    for root in hierarchies(MOUNTS.read_text()):
        for file in (root / kubelet.kubepods).rglob("cpuset.*"):
            with suppress(OSError):
                found[str(file)] = file.read_text()
    return found


async def test_mode_audit_writes_nothing_and_says_what_would_change(
    node: Node, kubelet: Kubelet
) -> None:
    exclusive, other = (
        await kubelet.run_pod("exclusive"),
        await kubelet.run_pod("other", "besteffort"),
    )
    await kubelet.run(exclusive, "main")
    await kubelet.run(other, "main")
    before, planned = contents(kubelet), spec(assigned(exclusive.uid, "main", "1"), shared="0")
    await node.start()
    status = await node.applied(planned | {"mode": "Audit"})
    assert contents(kubelet) == before
    (ready,) = (one for one in status["conditions"] if one["type"] == "Ready")
    assert (ready["status"], ready["reason"]) == ("True", "Audited")
    (found,) = status["containers"]
    assert (found["cpus"], found.get("exclusive", False)) == ("0-1", False)
    status = await node.applied(planned)
    assert status["containers"][0]["exclusive"]
    assert contents(kubelet) != before
    await node.applied(planned | {"mode": "Audit"})
    assert sets(kubelet) == dict.fromkeys(sets(kubelet), "0-1")
