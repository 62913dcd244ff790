"""Numapin as a user installs it: the default overlay, unchanged, on a real kubelet.

Each field of the manifests that limits a pod is read back from the kernel or from the kubelet. The
tests share one lab and run in this order; the first one installs numapin, the last ones remove it,
install it with Helm, and take the lab down.
"""

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from numapin_api.cpuset import CpuSet
from numapin_api.hardware.compact import compact_topology
from numapin_api.names import NAMESPACE
from numapin_campaigns.recording.recording import recording
from numapin_client.resources import NODE_REPORTS, Key
from numapin_enforcer.hardware.discovery import discover
from numapin_lab.components.build import provide, say
from numapin_lab.components.catalog import HELM
from numapin_lab.controlplane.api import AnswerError
from numapin_lab.installed.cluster import InstalledCluster
from numapin_lab.installed.manifests import qualified, wait_rolled_out
from numapin_lab.installed.running import InstalledLab
from numapin_lab.installed.uninstall import DELETED, left_in_cluster, left_on_node, uninstall
from numapin_lab.leftovers import Traces, host_paths
from numapin_lab.lifecycle import LabFolder
from numapin_lab.processes.daemons import kill
from numapin_lab.running_lab import pod, policy
from support.real.installing.helm import CHART, Helm
from support.real.installing.installed import (
    component,
    evict,
    in_namespace,
    is_ready,
    manifest,
    names,
    reserved,
    sampled,
    status_of,
    staying,
)
from support.real.installing.readme import RELEASED, first_pod

OWN, SHARED = CpuSet.parse("1"), CpuSet.parse("0")
EVERYTHING = CpuSet.parse("0-1")
COMPONENTS = ("operator", "enforcer", "standby")
CAPABILITIES = {"CAP_DAC_OVERRIDE": 1, "CAP_SYS_NICE": 23}
"""Source: linux/capability.h."""
PRIORITIES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
TOO_MANY_REQUESTS = 429
DAEMONS = ("enforcer", "standby")


@dataclass(frozen=True)
class Installed:
    """The lab, its folder, and by what it would be seen after it is down."""

    lab: InstalledLab
    folder: LabFolder
    traces: Traces


@pytest.fixture(scope="module")
def installed_as_pods(root: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    """A lab for numapin's pods, without them."""
    before = host_paths()
    folder = LabFolder(tmp_path_factory.mktemp("installed"), pods=True)
    try:
        cluster = folder.up(without={"operator", "enforcer"})
        assert isinstance(cluster, InstalledCluster)
        traces = Traces.of(folder.path, cluster.state, before)
        yield Installed(InstalledLab(cluster), folder, traces)
    finally:
        folder.down()


@pytest.fixture
def lab(installed_as_pods: Installed) -> InstalledLab:
    return installed_as_pods.lab


@pytest.fixture(params=COMPONENTS)
def member(request: pytest.FixtureRequest, lab: InstalledLab) -> dict[str, Any]:
    """A pod of each component."""
    return lab.pods_of(request.param)[0]


def test_the_readmes_three_commands_lead_to_the_first_pinned_pod(
    lab: InstalledLab, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The file of a release is the default overlay; its images are on the node already."""
    (tmp_path / "numapin-0.1.0-default.yaml").write_text(
        lab.kubectl("kustomize", str(lab.cluster.overlay))
    )
    commands = [[word.replace(RELEASED, str(tmp_path)) for word in words] for words in first_pod()]
    assert len(commands) == 3
    began, tries = time.monotonic(), 0

    def accepted(words: Sequence[str]) -> bool:
        nonlocal tries
        tries += 1
        return lab.accepted(*words)

    for words in commands:
        lab.wait(partial(accepted, words), f"the API server to take kubectl {' '.join(words)}")
    lab.eventually(partial(exclusive, lab), [True])
    found = {one.pod: set(one.allowed.values()) for one in lab.cluster.containers()}
    seconds = time.monotonic() - began
    assert (found["trading"], found["neighbour"]) == ({OWN}, {SHARED})
    with capsys.disabled():
        say(f"\nfirst pinned pod: {tries} commands typed, {seconds:.0f} s after the first one")
    wait_rolled_out(lab.cluster.api, lab.kubectl)
    lab.delete("pod", "trading", "neighbour", "analytics")
    lab.apply(policy())  # before the other one goes: no releaseDelay has to pass
    lab.delete("cpupolicy", "latency-critical")


def test_what_runs_is_the_default_overlay(lab: InstalledLab) -> None:
    """`kubectl diff` fails if a field of the overlay is not in the cluster."""
    assert lab.kubectl("diff", "--server-side", "-k", str(lab.cluster.overlay)) == ""
    assert [len(lab.pods_of(name)) for name in COMPONENTS] == [2, 1, 1]


def test_a_pod_is_pinned(lab: InstalledLab) -> None:
    lab.apply(policy(), pod("owner", cpu="1"), pod("neighbour"))
    lab.wait_running("owner", "neighbour")
    lab.eventually(lab.reported_exclusive, [True])
    assert (lab.allowed("owner"), lab.allowed("neighbour")) == (OWN, SHARED)


def test_the_kubelet_says_which_devices_there_are(lab: InstalledLab) -> None:
    """Through the folder of its socket, which is mounted read-only."""

    def says() -> bool:
        found = lab.cluster.api.get(NODE_REPORTS.path(Key(lab.node)))["status"].get("devices")
        return found is not None and "message" not in found

    lab.wait(says, "the kubelet to say which devices there are")


def test_the_network_interfaces_of_the_host_are_reported_by_name(lab: InstalledLab) -> None:
    """The enforcer's pod has a network, and so a sysfs, of its own."""
    (node,) = json.loads(lab.kubectl("get", "nodetopologies", "-o", "json"))["items"]
    assert node["status"].get("names", []) == compact_topology(discover()).get("names", [])


def test_numapins_own_pods_leave_the_exclusive_cpu(lab: InstalledLab) -> None:
    own = {name: one for name in COMPONENTS for one in lab.pods_of(name)}
    for one in own.values():
        assert status_of(lab.process(one))["Cpus_allowed_list"] == str(SHARED)


def test_a_pod_that_does_not_fit_has_an_event_that_says_why(lab: InstalledLab) -> None:
    """The operators' requests leave room for one whole CPU on two, so the policy takes that one."""
    lab.delete("pod", "owner")
    lab.apply(policy(reserved={"cpus": str(EVERYTHING)}))
    lab.eventually(lambda: reserved(lab), EVERYTHING)
    lab.apply(pod("refused", cpu="1"))
    lab.wait_running("refused")
    numbers = "wanted 1 CPU, none free; free on NUMA node 0: 0 CPUs"

    def told() -> bool:
        events = [one for one in lab.events("refused") if one["reason"] == "NotEnoughCPUs"]
        return any(numbers in one["message"] for one in events)

    lab.wait(told, "the Event of the refusal")
    assert numbers in lab.kubectl("describe", "pod", "refused")
    lab.eventually(lambda: lab.allowed("refused"), EVERYTHING)
    lab.delete("pod", "refused")
    lab.apply(policy())
    lab.eventually(lambda: reserved(lab), SHARED)


def test_users_and_capabilities_are_those_of_the_manifest(
    lab: InstalledLab, member: dict[str, Any]
) -> None:
    found = status_of(lab.process(member))
    wanted = manifest(member)["securityContext"]
    assert wanted["capabilities"]["drop"] == ["ALL"]
    added = [f"CAP_{name}" for name in wanted["capabilities"].get("add", ())]
    mask = sum(1 << CAPABILITIES[name] for name in added)
    user = wanted.get("runAsUser", member["spec"]["securityContext"].get("runAsUser"))
    assert set(found["Uid"].split()) == {str(user)}
    assert int(found["CapBnd"], 16) == mask
    assert int(found["CapEff"], 16) == int(found["CapPrm"], 16) == mask
    assert int(found["CapAmb"], 16) == int(found["CapInh"], 16) == 0
    assert found["NoNewPrivs"] == "1"
    assert found["Seccomp"] == "2"  # a filter. Source: seccomp(2)


def test_the_root_file_system_is_read_only(lab: InstalledLab, member: dict[str, Any]) -> None:
    mounts = Path(f"/proc/{lab.process(member)}/mounts").read_text().splitlines()
    options = {line.split()[1]: line.split()[3].split(",") for line in mounts}
    assert "ro" in options["/"]
    for mount in manifest(member)["volumeMounts"]:
        writable = "ro" if mount.get("readOnly") else "rw"
        at = mount["mountPath"].replace("/var/run/", "/run/")  # a symbolic link in the image
        assert writable in options[at], mount


def test_namespaces_are_the_pods_own_but_for_the_processes_of_the_node(
    lab: InstalledLab, member: dict[str, Any]
) -> None:
    """cgroup v1 shows a process only to those who see its PID: the enforcer needs hostPID."""
    pid = lab.process(member)
    kubelet = lab.cluster.kubelet.daemon.pid()
    assert kubelet is not None
    same = {
        kind
        for kind in ("net", "pid", "ipc", "uts", "mnt")
        if in_namespace(pid, kind) == in_namespace(kubelet, kind)
    }
    assert same == ({"pid"} if member["spec"].get("hostPID") else set())
    assert "hostNetwork" not in member["spec"]
    assert bool(member["spec"].get("hostPID")) == (component(member) != "operator")


def test_priority_and_limits_are_in_force(lab: InstalledLab, member: dict[str, Any]) -> None:
    assert member["spec"]["priority"] == PRIORITIES[member["spec"]["priorityClassName"]]
    limit = manifest(member)["resources"]["limits"]["memory"]
    mebibytes = int(limit.removesuffix("Mi"))
    inside = lab.cgroup(member).relative_to(lab.kubepods)
    files = [
        folder / "kubepods" / inside / name
        for folder in lab.cluster.runtime.cgroup.folders()
        for name in ("memory.limit_in_bytes", "memory.max")
    ]
    found = [int(file.read_text()) for file in files if file.exists()]
    assert found == [mebibytes << 20]


def test_every_probe_of_the_manifest_is_made_and_succeeds(
    lab: InstalledLab, member: dict[str, Any]
) -> None:
    """The kubelet counts its probes. Source: Kubernetes, pkg/kubelet/prober/prober_manager.go."""
    name = member["metadata"]["name"]
    wanted = {
        kind for kind in ("liveness", "readiness", "startup") if f"{kind}Probe" in manifest(member)
    }
    assert wanted

    def successful() -> set[str]:
        path = f"/api/v1/nodes/{lab.node}/proxy/metrics/probes"
        lines = [
            one for one in str(lab.cluster.api.get(path)).splitlines() if f'pod="{name}"' in one
        ]
        good = [
            one
            for one in lines
            if one.startswith("prober_probe_total") and 'result="successful"' in one
        ]
        return {
            kind for kind in wanted if any(f'probe_type="{kind.title()}"' in one for one in good)
        }

    lab.eventually(successful, wanted)
    (status,) = lab.pods_of(component(member))[0]["status"]["containerStatuses"]
    assert status["ready"]
    assert status["restartCount"] == 0


def test_the_disruption_budget_lets_one_operator_go_and_the_other_leads(lab: InstalledLab) -> None:
    lab.eventually(lambda: lab.leader() in names(lab, "operator"), True)
    leader = lab.leader()
    (other,) = names(lab, "operator") - {leader}
    evict(lab, leader)
    with pytest.raises(AnswerError, match="disruption budget") as refused:
        evict(lab, other)
    assert refused.value.status == TOO_MANY_REQUESTS
    lab.wait(partial(has_leader_after, lab, leader), "another operator to lead")


def test_a_killed_leader_is_replaced_and_the_next_one_pins(lab: InstalledLab) -> None:
    wait_rolled_out(lab.cluster.api, lab.kubectl)
    leader = lab.leader()
    (killed,) = [one for one in lab.pods_of("operator") if one["metadata"]["name"] == leader]
    lab.kubectl("delete", "pod", leader, f"--namespace={NAMESPACE}", "--force", "--grace-period=0")
    lab.wait(partial(has_leader_after, lab, leader), "another operator to lead")
    lab.apply(pod("owner", cpu="1"))
    lab.wait_running("owner")
    lab.eventually(lab.reported_exclusive, [True])
    assert (lab.allowed("owner"), lab.allowed("neighbour")) == (OWN, SHARED)
    assert killed["metadata"]["uid"] not in {
        one["metadata"]["uid"] for one in lab.pods_of("operator")
    }


def test_a_killed_enforcer_is_restarted_and_changes_no_set(lab: InstalledLab) -> None:
    (enforcer,) = lab.pods_of("enforcer")
    before = lab.cpusets()
    kill(lab.process(enforcer))

    def restarted() -> bool:
        (status,) = lab.pods_of("enforcer")[0]["status"]["containerStatuses"]
        return bool(status["restartCount"] == 1 and status["ready"])

    lab.wait(restarted, "the enforcer to be restarted by the kubelet")
    lab.eventually(lab.reported_exclusive, [True])
    old = enforcer["status"]["containerStatuses"][0]["containerID"].partition("://")[2]
    kept = {path: cpus for path, cpus in before.items() if old not in path}
    assert {path: cpus for path, cpus in lab.cpusets().items() if path in kept} == kept


def test_an_upgrade_of_the_daemonsets_moves_no_pod_and_fences_new_ones(lab: InstalledLab) -> None:
    """The same image under another tag replaces enforcer and standby; then they are rolled back.

    Sampled each millisecond: no container changes its CPUs, and a BestEffort pod that starts
    meanwhile never runs on the exclusive one. Sampled at the API server: a standby is ready at each
    moment.
    """
    before = {name: lab.pods_of(name)[0]["metadata"]["uid"] for name in DAEMONS}
    image = lab.pods_of("enforcer")[0]["spec"]["containers"][0]["image"]
    lab.cluster.runtime.ctr("images", "tag", qualified(image), qualified(f"{image}-next"))
    pinned = [lab.container_id(name) for name in ("owner", "neighbour")]
    with (
        recording(lab.kubepods) as record,
        sampled(lambda: [is_ready(one) for one in lab.pods_of("standby")]) as standbys,
    ):
        late = [replace_daemons(lab, f"{image}-next", "upgrade")]
        upgraded = {name: staying(lab, name)[0] for name in DAEMONS}
        late.append(replace_daemons(lab, image, "rollback"))
    assert {one["spec"]["containers"][0]["image"] for one in upgraded.values()} == {f"{image}-next"}
    assert not {one["metadata"]["uid"] for one in upgraded.values()} & set(before.values())
    assert [record.cpus(one) for one in pinned] == [[OWN], [SHARED]]
    assert [record.seconds_shared(pinned[0], one) for one in late] == [0.0, 0.0]
    assert all(any(one) for one in standbys)
    assert [True, False] in [sorted(one, reverse=True) for one in standbys]  # one beside the other
    lab.eventually(lab.reported_exclusive, [True])


def test_the_readmes_commands_remove_everything(lab: InstalledLab) -> None:
    uninstall(lab.cluster)
    assert left_in_cluster(lab.kubectl) == []
    assert lab.allowed("owner") == lab.allowed("neighbour") == EVERYTHING
    lab.delete("pod", "owner", "neighbour")
    lab.wait(lambda: not [path for path in lab.cpusets() if "pod" in path], "no cgroup of a pod")
    lab.eventually(lambda: left_on_node(lab.cluster), [])


def test_helm_installs_the_chart_and_its_test_pod_finds_that_it_works(
    lab: InstalledLab, tmp_path: Path
) -> None:
    """The API server serves the new kinds later than Helm returns; `helm test` waits for that."""
    program = provide([HELM.name])[HELM.name].path
    helm = Helm(program, tmp_path, lab.cluster.plane.kubeconfig)
    helm("install", "numapin", str(CHART), "--create-namespace")
    told = helm("test", "numapin", "--logs")
    assert "Phase:          Succeeded" in told, told
    assert "numapin works" in told, told
    lab.apply(policy(), pod("owner", cpu="1"), pod("neighbour"))
    lab.wait_running("owner", "neighbour")
    lab.eventually(lab.reported_exclusive, [True])
    assert (lab.allowed("owner"), lab.allowed("neighbour")) == (OWN, SHARED)
    lab.delete("pod", "owner", "neighbour")
    lab.delete("cpupolicy", "e2e")
    lab.wait(lambda: lab.assignment() is None, "the NodeAssignment to be deleted")
    helm("uninstall", "numapin")
    pods = ("get", "pods", f"--namespace={NAMESPACE}", "--output=name")
    lab.eventually(lambda: lab.kubectl(*pods).split(), ["pod/numapin-test"])
    lab.kubectl("delete", "crd", "-l", "app.kubernetes.io/name=numapin", DELETED)
    lab.kubectl("delete", "namespace", NAMESPACE, DELETED)
    assert left_in_cluster(lab.kubectl) == []
    lab.eventually(lambda: left_on_node(lab.cluster), [])


def test_nothing_is_left_on_the_machine(installed_as_pods: Installed) -> None:
    assert {line.split()[0] for line in installed_as_pods.traces.left()} >= {
        "process",
        "cgroup",
        "mount",
        "file",
    }
    installed_as_pods.folder.down()
    assert installed_as_pods.traces.left() == []


def has_leader_after(lab: InstalledLab, former: str) -> bool:
    """Whether one of the others leads: it may be the one that replaces the former leader."""
    return lab.leader() in names(lab, "operator") - {former}


def exclusive(lab: InstalledLab) -> list[bool]:
    """What is reported; nothing while NodeAssignments are not served yet."""
    try:
        return lab.reported_exclusive()
    except AnswerError:
        return []


def replace_daemons(lab: InstalledLab, image: str, newcomer: str) -> str:
    """Give both DaemonSets an image, and start two pods meanwhile.

    The QoS class of a BestEffort pod keeps it off the exclusive CPU, whoever runs; a Guaranteed pod
    that shares has no such class. Returns the id of the first one's container.
    """
    for name in DAEMONS:
        changed = ("set", "image", f"daemonset/numapin-{name}", f"{name}={image}")
        lab.kubectl(*changed, f"--namespace={NAMESPACE}")
    sharing = f"{newcomer}-sharing"
    lab.apply(pod(newcomer), pod(sharing, cpu="100m"))
    lab.wait_running(newcomer, sharing)
    wait_rolled_out(lab.cluster.api, lab.kubectl)
    lab.eventually(lambda: lab.allowed(sharing), SHARED)
    container = lab.container_id(newcomer)
    lab.delete("pod", newcomer, sharing)
    return container
