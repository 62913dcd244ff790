"""Numapin is removed in any order: the node and the cluster are as they were before it."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import permutations
from pathlib import Path

import pytest
import yaml
from grpclib.client import Channel

from numapin_api.names import NAMESPACE
from numapin_cli.main import main
from numapin_enforcer.runtime.generated import cri_v1_pb2 as pb
from numapin_enforcer.runtime.generated.cri_v1_grpc import RuntimeServiceStub
from numapin_lab.controlplane.installation import MANIFESTS, without_workloads
from numapin_lab.lifecycle import LabFolder
from numapin_lab.node.cgroups import below
from numapin_lab.processes.daemons import stop
from numapin_lab.running_lab import RunningLab, eventually, pod, policy
from support.suite.left_out import before_release

FILES = ("cpuset.cpus", "cpuset.mems", "cpu.cfs_quota_us", "cpu.shares", "cpu.max")
KINDS = (
    *("customresourcedefinitions", "namespaces", "clusterroles", "clusterrolebindings"),
    *("validatingadmissionpolicies", "validatingadmissionpolicybindings", "priorityclasses"),
)
EVERYTHING = "0-1"
LEFT = {"assignment.json", "quotas.json", "writer.lock"}
"""Files that stay: an assignment of mode None, the CFS limits that are lifted (none), the lock."""
PODS = ("owner", "neighbour")
STOP_SECONDS = 30.0


Found = dict[str, str]
"""What a node has: the files of each cgroup, and what the runtime would write next."""


@pytest.fixture(scope="module")
def removable(root: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabFolder]:
    """A lab of its own: what is removed here is missed by no other test."""
    folder = LabFolder(tmp_path_factory.mktemp("removal"))
    try:
        yield folder
    finally:
        folder.down()


@pytest.fixture
def installed(removable: LabFolder) -> Iterator[tuple[RunningLab, Found]]:
    """Numapin, which has pinned a pod that ran before, and what the node had until then."""
    lab = RunningLab(removable.up())
    lab.apply(pod("owner", cpu="1"), pod("neighbour"))
    lab.wait_running(*PODS)
    before = found(lab)
    lab.apply(policy(memory={"policy": "SingleNUMA"}))
    eventually(lambda: {name: str(lab.allowed(name)) for name in PODS}, pinned())
    eventually(lambda: _is_told(lab), True)
    assert found(lab) != before
    yield lab, before
    lab.delete("pod", *PODS)
    lab.wait(lambda: not [path for path in lab.cpusets() if "pod" in path], "no cgroup of a pod")


def pinned() -> dict[str, str]:
    return {"owner": "1", "neighbour": "0"}


def found(lab: RunningLab) -> Found:
    """Every file that numapin may write, of every cgroup below kubepods."""
    what = {}
    for hierarchy in lab.cluster.runtime.cgroup.folders():
        for file in FILES:
            for folder in below(hierarchy / "kubepods"):
                with suppress(FileNotFoundError):  # another version's file, or a removed cgroup
                    what[str(folder / file)] = (folder / file).read_text(encoding="ascii").strip()
    return what | {f"runtime: {name}": runtime(lab, name) for name in PODS}


def runtime(lab: RunningLab, name: str) -> str:
    """The CPUs and the CFS quota that the runtime would write with the next update.

    No set of its own has the same effect as one of all CPUs, which it has after a release.
    """

    async def ask() -> str:
        channel = Channel(path=str(lab.cluster.runtime.socket))
        try:
            request = pb.ContainerStatusRequest(container_id=lab.container_id(name))
            answer = await RuntimeServiceStub(channel).ContainerStatus(request)
        finally:
            channel.close()
        linux = answer.status.resources.linux
        return f"CPUs {linux.cpuset_cpus or EVERYTHING}, quota {linux.cpu_quota}"

    return asyncio.run(ask())


def _is_told(lab: RunningLab) -> bool:
    """Whether the runtime has the pin: what it is told later it must also be told back."""
    return runtime(lab, "owner").startswith("CPUs 1,")


def delete_policies(lab: RunningLab) -> None:
    lab.kubectl("delete", "cpupolicies", "--all")


def delete_manifests(lab: RunningLab) -> None:
    """`kubectl delete -k`; the pods of the lab are processes."""
    rendered = lab.kubectl("kustomize", str(MANIFESTS))
    documents = without_workloads(yaml.safe_load_all(rendered))
    lab.kubectl("delete", "-f", "-", "--wait", text=yaml.safe_dump_all(documents))


def end(lab: RunningLab, *names: str) -> None:
    """End pods as their DaemonSet or Deployment does when it is deleted."""
    for name in names:
        daemon = lab.cluster.standby if name == "standby" else lab.agent(name).daemon
        if (pid := daemon.pid()) is not None:
            stop(pid, STOP_SECONDS)


def release(lab: RunningLab) -> str:
    """`numapin-enforcer --release` with the enforcer's flags; returns what it said."""
    agent = lab.agent("enforcer")
    command = (sys.executable, *agent.arguments(agent.folder / "kubeconfig"), "--release")
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stderr


def as_the_readme_says(lab: RunningLab) -> None:
    delete_policies(lab)
    eventually(lab.assignment, None)
    delete_manifests(lab)
    end(lab, "operator", "standby", "enforcer")


def all_at_once(lab: RunningLab) -> None:
    """`kubectl delete -k` with policies: nobody is left to release the node."""
    end(lab, "operator", "enforcer", "standby")
    delete_manifests(lab)
    assert {name: str(lab.allowed(name)) for name in PODS} == pinned()
    said = release(lab)
    assert "released cgroup=" in said


def operator_first(lab: RunningLab) -> None:
    end(lab, "operator")
    delete_policies(lab)
    assert lab.assignment() is not None
    end(lab, "standby", "enforcer")
    release(lab)
    delete_manifests(lab)


def enforcer_first(lab: RunningLab) -> None:
    """The assignment stays, because nobody reports that the node was released; the CRD takes it."""
    end(lab, "standby", "enforcer")
    delete_policies(lab)
    eventually(lambda: _mode(lab), "None")
    release(lab)
    assert lab.assignment() is not None
    delete_manifests(lab)
    end(lab, "operator")


def _mode(lab: RunningLab) -> str | None:
    assignment = lab.assignment()
    return assignment.spec.mode if assignment else None


def after_the_command(lab: RunningLab) -> None:
    """What `numapin release` has released stays so, whatever is deleted first."""
    release_by_command(lab)
    for step in (delete_namespace, delete_crds, delete_others, delete_policies_if_any):
        step(lab)


ORDERS = (as_the_readme_says, all_at_once, operator_first, enforcer_first, after_the_command)


@pytest.mark.parametrize("remove", ORDERS)
def test_a_removal_in_any_order_leaves_node_and_cluster_as_they_were(
    installed: tuple[RunningLab, Found], remove: Callable[[RunningLab], None]
) -> None:
    lab, before = installed
    remove(lab)
    check(lab, before)


def check(lab: RunningLab, before: Found) -> None:
    """Nothing is left, on the node and in the cluster."""
    eventually(lambda: difference(before, found(lab)), {})
    objects = lab.kubectl("get", ",".join(KINDS), "--output=name").split()
    assert [one for one in objects if "numapin" in one] == []
    state = Path(lab.agent("enforcer").folder) / "state"
    left = {path.name: path.read_text() for path in state.iterdir()}
    assert left.keys() <= LEFT
    assert json.loads(left["quotas.json"]) == {}
    if "assignment.json" in left:
        assert '"mode": "None"' in left["assignment.json"]


def release_by_command(lab: RunningLab) -> None:
    flags = ("--kubeconfig", str(lab.cluster.plane.kubeconfig))
    assert main(["release", "--all", *flags]) == 0
    assert lab.assignment() is None


def delete_crds(lab: RunningLab) -> None:
    lab.kubectl("delete", *our_crds(lab))


def our_crds(lab: RunningLab) -> list[str]:
    found = lab.kubectl("get", "customresourcedefinitions", "--output=name").split()
    return [one for one in found if one.endswith(".numapin.io")]


def delete_namespace(lab: RunningLab) -> None:
    """What runs in it ends with it."""
    lab.kubectl("delete", "namespace", NAMESPACE)
    end(lab, "operator", "enforcer", "standby")


def delete_others(lab: RunningLab) -> None:
    """`kubectl delete -k`, or `helm uninstall`, without CRDs and namespace."""
    rendered = lab.kubectl("kustomize", str(MANIFESTS))
    others = [
        one
        for one in without_workloads(yaml.safe_load_all(rendered))
        if one["kind"] not in {"CustomResourceDefinition", "Namespace"}
    ]
    lab.kubectl("delete", "-f", "-", "--ignore-not-found", text=yaml.safe_dump_all(others))
    end(lab, "operator", "enforcer", "standby")


def delete_policies_if_any(lab: RunningLab) -> None:
    if our_crds(lab):
        delete_policies(lab)


FOUR_STEPS = (delete_policies_if_any, delete_crds, delete_others, delete_namespace)


@before_release
@pytest.mark.parametrize(
    "steps",
    tuple(permutations(FOUR_STEPS)),
    ids=lambda steps: "-".join(one.__name__ for one in steps),
)
def test_four_steps_in_every_order(
    installed: tuple[RunningLab, Found],
    steps: tuple[Callable[[RunningLab], None], ...],
) -> None:
    """One step follows the other at once; what is left then, the one command clears."""
    lab, before = installed
    for step in steps:
        step(lab)
    if difference(before, found(lab)):
        release(lab)
    check(lab, before)


def difference(before: Found, after: Found) -> dict[str, tuple[str | None, str | None]]:
    """What differs, with its value before and after."""
    names = before.keys() | after.keys()
    both = {name: (before.get(name), after.get(name)) for name in sorted(names)}
    return {name: values for name, values in both.items() if values[0] != values[1]}
