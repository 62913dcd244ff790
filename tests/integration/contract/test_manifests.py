"""The manifests start our programs with flags that these programs have."""

import os
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from numapin_api import names
from numapin_enforcer.node.kubelet_checkpoint import STATE_FILES
from numapin_enforcer.settings import parse_settings as parse_enforcer
from numapin_enforcer.standby.settings import parse_standby_settings
from numapin_lab.controlplane.kubectl import Kubectl
from numapin_operator.settings import parse_settings as parse_operator

ROOT = Path(__file__).parents[3]


OVERLAYS = ROOT / "manifests" / "overlays"

KUBELET = "/var/lib/kubelet"
SNAP = "/var/snap/microk8s/common"

CONTAINERD, CRIO = "/run/containerd/containerd.sock", "/run/crio/crio.sock"

LAYOUTS = {
    "default": (CONTAINERD, KUBELET),
    "crio": (CRIO, KUBELET),
    "k0s": ("/run/k0s/containerd.sock", "/var/lib/k0s/kubelet"),
    "k3s": ("/run/k3s/containerd/containerd.sock", KUBELET),
    "kind": (CONTAINERD, KUBELET),
    "microk8s": (f"{SNAP}/run/containerd.sock", f"{SNAP}/var/lib/kubelet"),
    **dict.fromkeys(("bottlerocket", "gke", "ubuntu"), (CONTAINERD, KUBELET)),
    "talos": (f"/var{CONTAINERD}", KUBELET),
    "openshift": (CRIO, KUBELET),
}
"""Where the socket of the container runtime and the kubelet's root folder are on the host."""

PAGE = ROOT / "docs" / "platforms.md"

Rendered = dict[tuple[str, str], dict[str, Any]]


def render(kubectl: Kubectl, overlay: Path) -> Rendered:
    """What `kubectl apply -k` applies, by kind and name."""
    text = kubectl("kustomize", str(overlay))
    return {(one["kind"], one["metadata"]["name"]): one for one in yaml.safe_load_all(text) if one}


@pytest.fixture(scope="module", params=LAYOUTS)
def overlay(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def rendered(installed: Kubectl, overlay: str) -> Rendered:
    return render(installed, OVERLAYS / overlay)


def _container(rendered: Rendered, kind: str, name: str) -> Any:
    (container,) = rendered[kind, name]["spec"]["template"]["spec"]["containers"]
    return container


def test_the_programs_take_the_flags_they_are_given(overlay: str, rendered: Rendered) -> None:
    operator = _container(rendered, "Deployment", "numapin-operator")
    given = [one.replace("$(POD_NAMESPACE)", names.NAMESPACE) for one in operator["args"]]
    assert parse_operator(given, {}).health_address.port == 8080
    enforcer = _container(rendered, "DaemonSet", "numapin-enforcer")
    settings = parse_enforcer(enforcer["args"], {"NODE_NAME": "n"})
    assert settings.health_address[1] == 8081
    mounted = {mount["mountPath"] for mount in enforcer["volumeMounts"]}
    assert settings.cri_socket is not None
    assert {str(settings.cgroupfs), str(settings.state_dir)} <= mounted
    assert str(settings.cri_socket.parent) in mounted
    without = {"bottlerocket", "talos"}
    assert (str(settings.systemd_socket.parent) in mounted) == (overlay not in without)
    assert str(settings.kubelet_state_dir / "cpu_manager_state") in mounted


def test_the_standby_reads_the_enforcers_local_copy(
    rendered: Rendered,
) -> None:
    both = ("numapin-enforcer", "numapin-standby")
    pods = [rendered["DaemonSet", name]["spec"]["template"]["spec"] for name in both]
    mounts = [{one["name"]: one for one in pod["containers"][0]["volumeMounts"]} for pod in pods]
    enforcer, standby = (pod["containers"][0] for pod in pods)
    settings = parse_standby_settings(standby["args"], {"NODE_NAME": "n"})
    assert parse_enforcer(enforcer["args"], {"NODE_NAME": "n"}).state_dir == settings.state_dir
    assert standby["image"] == enforcer["image"]
    assert mounts[1].keys() == {
        "cgroup",
        "state",
        "run",
        "cpu-manager-state",
        "memory-manager-state",
        "tmp",
    }
    for volume in pods[1]["volumes"]:
        assert volume in pods[0]["volumes"]
    assert mounts[1]["state"]["mountPath"] == str(settings.state_dir)
    assert mounts[1]["state"]["readOnly"]
    assert mounts[1]["cgroup"]["mountPath"] == str(settings.cgroupfs)
    assert not pods[1]["automountServiceAccountToken"]


def test_the_programs_find_what_the_host_has(overlay: str, rendered: Rendered) -> None:
    """Each option that names a file of the host is mounted from where that host has it."""
    socket, kubelet = LAYOUTS[overlay]
    given = _container(rendered, "DaemonSet", "numapin-enforcer")["args"]
    enforcer = parse_enforcer(given, {"NODE_NAME": "n"})
    given = _container(rendered, "DaemonSet", "numapin-standby")["args"]
    standby = parse_standby_settings(given, {"NODE_NAME": "n"})
    assert enforcer.cri_socket is not None
    assert _on_host(rendered, "numapin-enforcer", enforcer.cri_socket) == socket
    assert enforcer.pod_resources_socket is not None
    found = _on_host(rendered, "numapin-enforcer", enforcer.pod_resources_socket)
    assert found == f"{kubelet}/pod-resources/kubelet.sock"
    for name, settings in (("numapin-enforcer", enforcer), ("numapin-standby", standby)):
        for file in STATE_FILES:
            checkpoint = settings.kubelet_state_dir / file
            assert _on_host(rendered, name, checkpoint) == f"{kubelet}/{file}"
        assert _on_host(rendered, name, settings.cgroupfs) == "/sys/fs/cgroup"
        assert settings.cgroup_root == ("/kubelet" if overlay == "kind" else "/")


def test_every_overlay_is_tried_and_in_the_docs_with_its_paths() -> None:
    row = re.compile(r"^\| `(\w+)`[^|]*\| `(/[^`]+)` \| `(/[^`]+)` \|$", re.MULTILINE)
    listed = {name: (socket, folder) for name, socket, folder in row.findall(PAGE.read_text())}
    assert listed == LAYOUTS
    assert LAYOUTS.keys() == {one.name for one in OVERLAYS.iterdir()}


def _on_host(rendered: Rendered, daemon_set: str, path: Path) -> str:
    """Where a file of a container is on the host."""
    pod = rendered["DaemonSet", daemon_set]["spec"]["template"]["spec"]
    volumes = {one["name"]: one.get("hostPath", {}).get("path") for one in pod["volumes"]}
    (container,) = pod["containers"]
    (mount,) = (one for one in container["volumeMounts"] if path.is_relative_to(one["mountPath"]))
    return str(Path(volumes[mount["name"]]) / path.relative_to(mount["mountPath"]))


def test_an_upgrade_leaves_no_node_without_a_standby(rendered: Rendered) -> None:
    """The last one is deleted when the next one says that it stands by."""
    spec = rendered["DaemonSet", "numapin-standby"]["spec"]
    strategy = spec["updateStrategy"]["rollingUpdate"]
    assert strategy["maxUnavailable"] == 0
    assert strategy["maxSurge"] == "10%"
    container = _container(rendered, "DaemonSet", "numapin-standby")
    settings = parse_standby_settings(container["args"], {"NODE_NAME": "n"})
    assert settings.ready_file is not None
    probe = container["readinessProbe"]
    assert " ".join(probe["exec"]["command"]) == "test -e /tmp/ready"
    assert probe["failureThreshold"] * probe.get("periodSeconds", 10) == 60
    assert str(settings.ready_file) == "/tmp/ready"
    (mount,) = (one for one in container["volumeMounts"] if one["mountPath"] == "/tmp")
    assert not mount.get("readOnly")
    volumes = spec["template"]["spec"]["volumes"]
    assert {"name": mount["name"], "emptyDir": {}} in volumes, "of each pod's own"


@pytest.mark.parametrize("overlay", ["default", "k3s", "crio"], scope="module")
def test_selinux_lets_both_programs_reach_the_host(
    installed: Kubectl, overlay: str, tmp_path: Path
) -> None:
    component = "" if overlay == "crio" else f"components: [{_seen_from(tmp_path, SELINUX)}]\n"
    rendered = render(installed, _overlay_of(tmp_path, OVERLAYS / overlay, component))
    for name in ("numapin-enforcer", "numapin-standby"):
        pod = rendered["DaemonSet", name]["spec"]["template"]["spec"]
        assert pod["securityContext"]["seLinuxOptions"] == {"type": "spc_t"}
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    operator = rendered["Deployment", "numapin-operator"]["spec"]["template"]["spec"]
    assert "seLinuxOptions" not in operator["securityContext"]


SELINUX = ROOT / "manifests" / "components" / "selinux"


def _overlay_of(folder: Path, base: Path, more: str) -> Path:
    """An overlay that an administrator writes."""
    text = f"resources: [{_seen_from(folder, base)}]\n{more}"
    (folder / "kustomization.yaml").write_text(text)
    return folder


def _seen_from(folder: Path, other: Path) -> str:
    return os.path.relpath(other, folder)


@pytest.mark.parametrize("base", ["default", "gke", "openshift"], scope="module")
def test_another_namespace_changes_everything(
    installed: Kubectl, base: str, tmp_path: Path
) -> None:
    overlay = _overlay_of(tmp_path, OVERLAYS / base, "namespace: elsewhere\n")
    text = installed("kustomize", str(overlay))
    assert names.NAMESPACE not in text


def test_a_prefix_of_names_reaches_what_a_role_allows(installed: Kubectl, tmp_path: Path) -> None:
    overlay = _overlay_of(tmp_path, OVERLAYS / "openshift", "namePrefix: our-\n")
    found = render(installed, overlay)
    (rule,) = found["ClusterRole", "our-numapin-nodes"]["rules"]
    (constraints,) = (name for kind, name in found if kind == "SecurityContextConstraints")
    assert rule["resourceNames"] == [constraints]
    for subject in found["RoleBinding", "our-numapin-nodes"]["subjects"]:
        assert ("ServiceAccount", subject["name"]) in found


def test_the_names_are_those_of_the_contract(
    rendered: Rendered,
) -> None:
    for account in (names.OPERATOR_SERVICE_ACCOUNT, names.ENFORCER_SERVICE_ACCOUNT):
        assert rendered["ServiceAccount", account]["metadata"]["namespace"] == names.NAMESPACE
    (leases,) = (
        rule for rule in rendered["Role", "numapin-operator"]["rules"] if rule.get("resourceNames")
    )
    assert leases["resourceNames"] == [names.LEADER_LEASE]
    policy = rendered["ValidatingAdmissionPolicy", "numapin-enforcer-own-node"]
    account = f'contains("{names.ENFORCER_SERVICE_ACCOUNT}")'
    assert account in policy["spec"]["matchConditions"][0]["expression"]


def test_one_operator_stays_when_nodes_are_drained(
    rendered: Rendered,
) -> None:
    deployment = rendered["Deployment", "numapin-operator"]["spec"]
    budget = rendered["PodDisruptionBudget", "numapin-operator"]["spec"]
    assert budget["maxUnavailable"] < deployment["replicas"]
    assert budget["selector"] == deployment["selector"]
    affinity = deployment["template"]["spec"]["affinity"]["podAntiAffinity"]
    assert list(affinity) == ["preferredDuringSchedulingIgnoredDuringExecution"]
    (preferred,) = affinity["preferredDuringSchedulingIgnoredDuringExecution"]
    term = preferred["podAffinityTerm"]
    labels = deployment["template"]["metadata"]["labels"]
    assert term["labelSelector"]["matchLabels"].items() <= labels.items()


@pytest.mark.parametrize(
    ("kind", "name", "expected"),
    [
        ("Deployment", "numapin-operator", {"startupProbe", "livenessProbe", "readinessProbe"}),
        ("DaemonSet", "numapin-enforcer", {"startupProbe", "livenessProbe", "readinessProbe"}),
        ("DaemonSet", "numapin-standby", {"readinessProbe"}),
    ],
)
def test_probes_wait_longer_than_a_second(
    rendered: Rendered, kind: str, name: str, expected: set[str]
) -> None:
    """A busy machine may need that long, and a restart would not help it."""
    container = _container(rendered, kind, name)
    probes = {field: value for field, value in container.items() if field.endswith("Probe")}
    assert probes.keys() == expected
    assert all(probe["timeoutSeconds"] >= 5 for probe in probes.values())


def test_nothing_is_privileged(rendered: Rendered) -> None:
    allowed = {
        ("Deployment", "numapin-operator"): [],
        ("DaemonSet", "numapin-enforcer"): ["DAC_OVERRIDE", "SYS_NICE"],
        ("DaemonSet", "numapin-standby"): ["DAC_OVERRIDE", "SYS_NICE"],
    }
    for (kind, name), capabilities in allowed.items():
        pod = rendered[kind, name]["spec"]["template"]["spec"]
        assert not {"hostNetwork", "hostIPC"} & pod.keys()
        assert ("hostPID" in pod) == (kind == "DaemonSet"), "see the DaemonSets"
        security = _container(rendered, kind, name)["securityContext"]
        assert security["readOnlyRootFilesystem"]
        assert not security["allowPrivilegeEscalation"]
        assert not security.get("privileged")
        assert security["capabilities"]["drop"] == ["ALL"]
        assert security["capabilities"].get("add", []) == capabilities
