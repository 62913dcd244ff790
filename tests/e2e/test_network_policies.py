"""The NetworkPolicies of the manifests, enforced by kube-router on the node of numapin's pods.

Each connection is a real one, from the network namespace of one pod to the address of another. The
API server is not among the addresses: in the lab it has one of the node, and a pod's own node is
reached whatever a policy says. Another pod stands for it: operator and enforcer may reach any.
"""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial

import pytest

from numapin_api.cpuset import CpuSet
from numapin_api.names import NAMESPACE
from numapin_lab.cluster import Cluster
from numapin_lab.components.build import provide
from numapin_lab.components.catalog import KUBE_ROUTER
from numapin_lab.installed.cluster import InstalledCluster
from numapin_lab.installed.kube_router import KubeRouter
from numapin_lab.installed.manifests import wait_rolled_out
from numapin_lab.installed.running import InstalledLab
from numapin_lab.running_lab import RunningLab, pod, policy

UNNAMED = 9999
"""A port that no policy names; a listener of the test has it."""
PARTS = ("operator", "enforcer", "standby")
HEALTH = {"operator": 8080, "enforcer": 8081}
CONNECT = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 5)"
LISTEN = f"""import socket
server = socket.create_server(("", {UNNAMED}))
print("listening", flush=True)
while True:
    server.accept()[0].close()
"""
SCRAPE = """import sys, urllib.request
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
address = f"http://{sys.argv[1]}:{sys.argv[2]}/metrics"
print(opener.open(address, timeout=30).read().decode())
"""


@pytest.fixture(scope="module")
def kube_router(cluster: Cluster) -> Iterator[KubeRouter]:
    """Kube-router, which the first test starts: until then it sees what nothing forbids."""
    if not isinstance(cluster, InstalledCluster):
        pytest.skip("processes have no network of their own")
    found = KubeRouter(cluster, provide([KUBE_ROUTER.name])[KUBE_ROUTER.name].path)
    try:
        yield found
    finally:
        found.stop()


@pytest.fixture
def pods(lab: RunningLab, kube_router: KubeRouter) -> InstalledLab:
    """The lab with a pod that is not numapin's."""
    assert isinstance(lab, InstalledLab)
    lab.apply(pod("foreign"))
    lab.wait_running("foreign")
    return lab


def test_only_what_a_policy_allows_is_reached(pods: InstalledLab, kube_router: KubeRouter) -> None:
    members = {name: pods.pods_of(name)[0] for name in PARTS}
    pids = {name: pods.process(member) for name, member in members.items()}
    pids["foreign"] = foreign(pods)
    addresses = {name: str(one["status"]["podIP"]) for name, one in members.items()}
    addresses["foreign"] = str(pods.pod("foreign")["status"]["podIP"])
    ways = [("foreign", addresses[name], UNNAMED) for name in members]
    ways += [("foreign", addresses[name], port) for name, port in HEALTH.items()]
    ways += [(name, addresses["foreign"], UNNAMED) for name in members]
    forbidden = {
        *(("foreign", addresses[name], UNNAMED) for name in members),
        ("standby", addresses["foreign"], UNNAMED),
    }

    def reached() -> set[tuple[str, str, int]]:
        return {
            (source, address, port)
            for source, address, port in ways
            if connects(pids[source], address, port)
        }

    with ExitStack() as listeners:
        for pid in pids.values():
            listener = listeners.enter_context(
                subprocess.Popen(inside(pid, LISTEN), stdout=subprocess.PIPE)
            )
            listeners.callback(listener.kill)
            assert listener.stdout is not None
            assert listener.stdout.readline() == b"listening\n"
        pods.eventually(reached, set(ways))
        kube_router.start()
        pods.eventually(reached, set(ways) - forbidden)


def test_numapin_works_and_is_scraped_where_the_policies_are_enforced(
    pods: InstalledLab, kube_router: KubeRouter
) -> None:
    """New pods of every part begin under the policies: they become ready, and pin."""
    kube_router.start()
    old = uids_of_numapin(pods)
    pods.kubectl("delete", "pods", "--all", "--wait", f"--namespace={NAMESPACE}")
    wait_rolled_out(pods.cluster.api, pods.kubectl)
    assert old.isdisjoint(uids_of_numapin(pods))
    pods.apply(policy(), pod("owner", cpu="1"))
    pods.wait_running("owner")
    pods.eventually(pods.reported_exclusive, [True])
    assert pods.allowed("owner") == CpuSet.parse("1")
    for name, port in HEALTH.items():
        pods.wait(partial(is_scraped, pods, name, port), f"the metrics of the {name}")


def uids_of_numapin(pods: InstalledLab) -> set[str]:
    """The UIDs of the pods of every part."""
    return {one["metadata"]["uid"] for name in PARTS for one in pods.pods_of(name)}


def is_scraped(pods: InstalledLab, name: str, port: int) -> bool:
    """Whether a pod that is not numapin's gets the metrics."""
    address = str(pods.pods_of(name)[0]["status"]["podIP"])
    answer = run(inside(foreign(pods), SCRAPE, address, str(port)))
    return answer.returncode == 0 and "numapin_" in answer.stdout


def foreign(pods: InstalledLab) -> int:
    """A process of the pod that is not numapin's."""
    return int((pods.container("foreign") / "cgroup.procs").read_text().split()[0])


def connects(pid: int, address: str, port: int) -> bool:
    """Whether a TCP connection from the pod of a process is accepted."""
    return run(inside(pid, CONNECT, address, str(port))).returncode == 0


def inside(pid: int, program: str, *arguments: str) -> tuple[str, ...]:
    """The command that runs a Python program in the network of a pod."""
    return ("nsenter", f"--net=/proc/{pid}/ns/net", sys.executable, "-c", program, *arguments)


def run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run to the end."""
    return subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL
    )
