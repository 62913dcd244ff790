"""The manifests start our programs with flags that these programs have."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from numapin_api import names
from numapin_enforcer.settings import parse_settings as parse_enforcer
from numapin_enforcer.settings import parse_standby_settings
from numapin_lab.controlplane.kubectl import Kubectl
from numapin_operator.settings import parse_settings as parse_operator

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module", params=["default", "crio"])
def rendered(
    installed: Kubectl, request: pytest.FixtureRequest
) -> dict[tuple[str, str], dict[str, Any]]:
    """What `kubectl apply -k` applies, by kind and name."""
    text = installed("kustomize", str(ROOT / "manifests" / "overlays" / request.param))
    return {(one["kind"], one["metadata"]["name"]): one for one in yaml.safe_load_all(text) if one}


def _container(rendered: dict[tuple[str, str], dict[str, Any]], kind: str, name: str) -> Any:
    (container,) = rendered[kind, name]["spec"]["template"]["spec"]["containers"]
    return container


def test_the_programs_take_the_flags_they_are_given(
    rendered: dict[tuple[str, str], dict[str, Any]],
) -> None:
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
    assert str(settings.systemd_socket.parent) in mounted
    assert str(settings.kubelet_state_dir / "cpu_manager_state") in mounted


def test_the_standby_reads_the_enforcers_local_copy(
    rendered: dict[tuple[str, str], dict[str, Any]],
) -> None:
    both = ("numapin-enforcer", "numapin-standby")
    pods = [rendered["DaemonSet", name]["spec"]["template"]["spec"] for name in both]
    mounts = [{one["name"]: one for one in pod["containers"][0]["volumeMounts"]} for pod in pods]
    enforcer, standby = (pod["containers"][0] for pod in pods)
    settings = parse_standby_settings(standby["args"], {"NODE_NAME": "n"})
    assert parse_enforcer(enforcer["args"], {"NODE_NAME": "n"}).state_dir == settings.state_dir
    assert standby["image"] == enforcer["image"]
    assert mounts[1].keys() == {"cgroup", "state", "run", "cpu-manager-state"}
    for volume in pods[1]["volumes"]:
        assert volume in pods[0]["volumes"]
    assert mounts[1]["state"]["mountPath"] == str(settings.state_dir)
    assert mounts[1]["state"]["readOnly"]
    assert mounts[1]["cgroup"]["mountPath"] == str(settings.cgroupfs)
    assert not pods[1]["automountServiceAccountToken"]


def test_the_names_are_those_of_the_contract(
    rendered: dict[tuple[str, str], dict[str, Any]],
) -> None:
    for account in (names.OPERATOR_SERVICE_ACCOUNT, names.ENFORCER_SERVICE_ACCOUNT):
        assert rendered["ServiceAccount", account]["metadata"]["namespace"] == names.NAMESPACE
    (leases,) = (
        rule for rule in rendered["Role", "numapin-operator"]["rules"] if rule.get("resourceNames")
    )
    assert leases["resourceNames"] == [names.LEADER_LEASE]
    policy = rendered["ValidatingAdmissionPolicy", "numapin-enforcer-own-node"]
    account = f"system:serviceaccount:{names.NAMESPACE}:{names.ENFORCER_SERVICE_ACCOUNT}"
    assert account in json.dumps(policy["spec"]["matchConditions"])


def test_one_operator_stays_when_nodes_are_drained(
    rendered: dict[tuple[str, str], dict[str, Any]],
) -> None:
    deployment = rendered["Deployment", "numapin-operator"]["spec"]
    budget = rendered["PodDisruptionBudget", "numapin-operator"]["spec"]
    assert budget["minAvailable"] < deployment["replicas"]
    assert budget["selector"] == deployment["selector"]
    affinity = deployment["template"]["spec"]["affinity"]["podAntiAffinity"]
    assert list(affinity) == ["preferredDuringSchedulingIgnoredDuringExecution"]
    (preferred,) = affinity["preferredDuringSchedulingIgnoredDuringExecution"]
    term = preferred["podAffinityTerm"]
    labels = deployment["template"]["metadata"]["labels"]
    assert term["labelSelector"]["matchLabels"].items() <= labels.items()


def test_probes_wait_longer_than_a_second(
    rendered: dict[tuple[str, str], dict[str, Any]],
) -> None:
    """A busy machine may need that long, and a restart would not help it."""
    operator = _container(rendered, "Deployment", "numapin-operator")
    enforcer = _container(rendered, "DaemonSet", "numapin-enforcer")
    assert "startupProbe" in operator
    for container in (operator, enforcer):
        probes = [value for name, value in container.items() if name.endswith("Probe")]
        assert len(probes) >= 2
        assert all(probe["timeoutSeconds"] >= 5 for probe in probes)


def test_nothing_is_privileged(rendered: dict[tuple[str, str], dict[str, Any]]) -> None:
    allowed = {
        ("Deployment", "numapin-operator"): [],
        ("DaemonSet", "numapin-enforcer"): ["DAC_OVERRIDE", "SYS_NICE"],
        ("DaemonSet", "numapin-standby"): ["DAC_OVERRIDE", "SYS_NICE"],
    }
    for (kind, name), capabilities in allowed.items():
        pod = rendered[kind, name]["spec"]["template"]["spec"]
        assert not {"hostNetwork", "hostPID", "hostIPC"} & pod.keys()
        security = _container(rendered, kind, name)["securityContext"]
        assert security["readOnlyRootFilesystem"]
        assert not security["allowPrivilegeEscalation"]
        assert not security.get("privileged")
        assert security["capabilities"]["drop"] == ["ALL"]
        assert security["capabilities"].get("add", []) == capabilities
