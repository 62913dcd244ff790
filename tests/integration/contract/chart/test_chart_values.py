"""Each value of the chart is used, checked and documented."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from support.real.installing.helm import CHART, Helm, Object, by_name


def test_an_annotation_of_the_user_replaces_that_of_the_chart(helm: Helm) -> None:
    setting = r"operator.podAnnotations.prometheus\.io/scrape=no"
    operator = helm.template(setting)["Deployment", "numapin-operator"]
    annotations = operator["spec"]["template"]["metadata"]["annotations"]
    assert annotations["prometheus.io/scrape"] == "no"
    assert annotations["prometheus.io/port"] == "8080"


def test_each_value_is_used(helm: Helm) -> None:
    found = helm.template(
        "crds.install=false",
        "image.registry=registry.example.com/team/",
        "image.tag=1.2.3",
        "image.pullPolicy=Always",
        "image.pullSecrets={one}",
        f"image.enforcer.digest=sha256:{'a' * 64}",
        "logFormat=text",
        "operator.replicas=3",
        "operator.extraArgs={--kube-api-qps=5}",
        "operator.podAnnotations.x=y",
        "operator.nodeSelector.role=control",
        "operator.tolerations[0].operator=Exists",
        "operator.priorityClassName=low",
        "operator.resources.requests.cpu=7",
        "nodes.nodeSelector.pool=fast",
        "nodes.tolerations=null",
        "nodes.priorityClassName=lower",
        "nodes.podAnnotations.x=z",
        "enforcer.extraArgs={--verbose}",
        "enforcer.maxUnavailable=2",
        "enforcer.resources.limits.memory=1Gi",
        "standby.extraArgs={--quiet}",
        "standby.maxSurge=3",
        "standby.resources.limits.memory=2Gi",
        "systemd.enabled=false",
    )
    assert "CustomResourceDefinition" not in {kind for kind, _ in found}
    operator = found["Deployment", "numapin-operator"]["spec"]
    pod = operator["template"]["spec"]
    (container,) = pod["containers"]
    assert operator["replicas"] == 3
    assert operator["template"]["metadata"]["annotations"].items() > {"x": "y"}.items()
    assert container["image"] == "registry.example.com/team/numapin-operator:1.2.3"
    assert container["imagePullPolicy"] == "Always"
    assert container["args"][-2:] == ["--log-format=text", "--kube-api-qps=5"]
    assert container["resources"]["requests"] == {"cpu": 7, "memory": "256Mi"}
    assert pod["imagePullSecrets"] == [{"name": "one"}]
    assert pod["nodeSelector"] == {"kubernetes.io/os": "linux", "role": "control"}
    assert pod["tolerations"] == [{"operator": "Exists"}]
    assert pod["priorityClassName"] == "low"
    changed = {"enforcer": ("maxUnavailable", 2, "1Gi", "--verbose")}
    changed["standby"] = ("maxSurge", 3, "2Gi", "--quiet")
    for name, (pace, share, memory, flag) in changed.items():
        spec = found["DaemonSet", f"numapin-{name}"]["spec"]
        pod = spec["template"]["spec"]
        (container,) = pod["containers"]
        assert spec["updateStrategy"]["rollingUpdate"][pace] == share
        assert spec["template"]["metadata"]["annotations"].items() >= {"x": "z"}.items()
        image = f"registry.example.com/team/numapin-enforcer@sha256:{'a' * 64}"
        assert (container["image"], container["imagePullPolicy"]) == (image, "Always")
        assert container["args"][-2:] == ["--log-format=text", flag]
        assert container["resources"]["limits"] == {"memory": memory}
        assert pod["nodeSelector"] == {"kubernetes.io/os": "linux", "pool": "fast"}
        assert pod["priorityClassName"] == "lower"
        assert "tolerations" not in pod
        assert "dbus" not in {one["name"] for one in pod["volumes"]}


@pytest.mark.parametrize(
    ("setting", "named"),
    [
        ("operator.replica=3", "replica"),
        ("distribution=k3z", "distribution"),
        ("operator.replicas=0", "replicas"),
        ("enforcer.maxUnavailable=half", "maxUnavailable"),
        ("enforcer.maxUnavailable=0", "maxUnavailable"),
        ("standby.maxSurge=0%", "maxSurge"),
        (r"operator.nodeSelector.kubernetes\.io/os=windows", "nodeSelector"),
        (r"nodes.nodeSelector.kubernetes\.io/os=linux", "nodeSelector"),
        ("image.operator.digest=sha256:12", "digest"),
        ("image.tag=a tag", "tag"),
        ("image.registry=https://registry.example.com", "registry"),
        ("image.registry=registry.example.com/team:1.0", "registry"),
        ("image.operator.repository=numapin-operator:1.0", "repository"),
        ("image.enforcer=null", "missing property 'enforcer'"),
        ("nodes=null", "missing property 'nodes'"),
        ("logFormat=null", "missing property 'logFormat'"),
        ("standby.maxSurge=null", "missing property 'maxSurge'"),
        ("logFormat=xml", "logFormat"),
        ("systemd.enabled=perhaps", "enabled"),
        ("alerts.runbooks=a#b", "runbooks"),
        ("dashboard.label=x", "label"),
        ("nodes.tolerations[0].effekt=NoSchedule", "effekt"),
        ("resources.limits.memory=1Gi", "resources"),
        ("operator.affinity.nodeAffinty.x=y", "nodeAffinty"),
        ("operator.topologySpreadConstraints[0].maxSkew=0", "maxSkew"),
        ("enforcer.topologySpreadConstraints[0].maxSkew=1", "topologySpreadConstraints"),
        (r"operator.podLabels.app\.kubernetes\.io/name=x", "/operator/podLabels/app.kubernetes.io"),
        (r"commonLabels.helm\.sh/chart=x", "/commonLabels/helm.sh"),
        ("standby.extraEnv[0].value=x", "missing property 'name'"),
        ("operator.extraVolumes[0].name=x", "/operator/extraVolumes/0"),
        ("operator.extraVolumeMounts[0].mountPath=x", "/operator/extraVolumeMounts/0/mountPath"),
        ("nodes.podSecurityContext.appArmorProfile.type=off", "appArmorProfile/type"),
        ("enforcer.securityContext.capabilites.add={A}", "capabilites"),
        ("standby.serviceAccount.name=A", "/standby/serviceAccount/name"),
        ("networkPolicies.egressPorts={0}", "egressPorts"),
        ("networkPolicies.egressPorts={https}", "egressPorts"),
        ("serviceMonitor.interval=often", "interval"),
        ("nameOverride=-x", "nameOverride"),
        ("host.kubeletDir=var/lib", "/host/kubeletDir"),
        ("host.runtimeSocket=unix:///run/x.sock", "/host/runtimeSocket"),
        ("host.cgroupRoot=/", "/host/cgroupRoot"),
        ("selinux.type=spc", "/selinux/type"),
        ("nodes.hostPID=yes please", "/nodes/hostPID"),
        ("openshift.scc=true", "scc"),
        (f"fullnameOverride={'a' * 41}", "fullnameOverride"),
    ],
)
def test_a_wrong_value_is_refused_and_named(helm: Helm, setting: str, named: str) -> None:
    answer = helm.ask("template", "numapin", str(CHART), f"--set={setting}")
    assert answer.returncode != 0
    assert named in answer.stderr
    assert "values don't meet the specifications of the schema" in answer.stderr


@pytest.mark.parametrize(
    "registry", ["localhost", "localhost:5000", "registry.example.com:5000/team/sub", "GHCR.io/x/"]
)
def test_a_registry_may_have_a_port_and_folders(helm: Helm, registry: str) -> None:
    operator = helm.template(f"image.registry={registry}")["Deployment", "numapin-operator"]
    (container,) = operator["spec"]["template"]["spec"]["containers"]
    assert container["image"].startswith(f"{registry.rstrip('/')}/numapin-operator:")


def test_names_that_look_like_numbers_stay_names(helm: Helm) -> None:
    settings = [
        "image.pullSecrets[0]=7",
        "operator.priorityClassName=8",
        "nodes.priorityClassName=9",
    ]
    strings = [f"--set-string={one}" for one in settings]
    found = by_name(helm("template", "2024", str(CHART), *strings))
    operator = found["Deployment", "numapin-operator"]
    node = found["DaemonSet", "numapin-enforcer"]
    assert operator["metadata"]["labels"]["app.kubernetes.io/instance"] == "2024"
    pods = [one["spec"]["template"]["spec"] for one in (operator, node)]
    assert [one["imagePullSecrets"] for one in pods] == [[{"name": "7"}]] * 2
    assert [one["priorityClassName"] for one in pods] == ["8", "9"]


def test_the_schema_knows_every_value() -> None:
    _compare(yaml.safe_load((CHART / "values.yaml").read_text()), SCHEMA, "values")


SCHEMA = json.loads((CHART / "values.schema.json").read_text())
OF_KUBERNETES = ("resources", "affinity", "podSecurityContext", "securityContext", "tolerations")
"""Values with more fields than the chart has defaults for."""


def _compare(value: Any, schema: Object, where: str) -> None:
    if "$ref" in schema:
        schema = SCHEMA["definitions"][schema["$ref"].removeprefix("#/definitions/")]
    if schema.get("additionalProperties") is False and isinstance(value, dict):
        properties = schema["properties"].keys() - {"global"}
        if not set(where.split(".")) & set(OF_KUBERNETES):
            assert properties == value.keys(), where
        for key, one in value.items():
            _compare(one, schema["properties"][key], f"{where}.{key}")


def test_the_readme_lists_every_value() -> None:
    """Itself, or what it is a part of; the row of a whole section is not enough."""
    listed = set(re.findall(r"^\| `([\w.]+)` \|", (CHART / "README.md").read_text(), re.MULTILINE))
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    for path in _paths(values):
        names_of_it = {".".join(path[:count]) for count in range(min(2, len(path)), len(path) + 1)}
        assert names_of_it & listed, ".".join(path)


def _paths(value: Any, *path: str) -> Iterator[tuple[str, ...]]:
    """The path of each value that is no mapping, or an empty one."""
    if not isinstance(value, dict) or not value:
        yield path
        return
    for key, one in value.items():
        yield from _paths(one, *path, key)
