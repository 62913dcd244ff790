"""The Helm chart installs what the manifests install; the real Helm on a real API server."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml

from numapin_api import names
from numapin_lab.components.build import provide
from numapin_lab.components.catalog import HELM
from numapin_lab.controlplane.kubectl import Kubectl
from numapin_lab.controlplane.servers import ControlPlane, ControlPlanePorts
from numapin_lab.errors import LabError
from numapin_lab.processes.ports import choose
from numapin_lab.running_lab import eventually
from numapin_operator.settings import parse_settings as parse_operator
from support.real.installing.helm import CHART, Helm, Object, by_name

ROOT = Path(__file__).parents[3]
OVERLAYS = ROOT / "manifests" / "overlays"
TEST_POD = ("Pod", "numapin-test")
KEPT = {"helm.sh/resource-policy": "keep"}


@pytest.fixture(scope="module")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    program = provide([HELM.name])[HELM.name].path
    return Helm(program, tmp_path_factory.mktemp("helm"))


def without_names(value: Any) -> Any:
    """Lists of named things as mappings: their order has no meaning."""
    if isinstance(value, dict):
        return {key: without_names(one) for key, one in value.items()}
    if isinstance(value, list) and value and all(isinstance(one, dict) for one in value):
        if all("name" in one for one in value):
            return {one["name"]: without_names(one) for one in value}
        return [without_names(one) for one in value]
    return value


def comparable(found: Object) -> Object:
    """An object without what the chart may add: labels, and that Helm keeps the CRDs."""
    metadata = {key: one for key, one in found["metadata"].items() if key != "labels"}
    if found["kind"] == "CustomResourceDefinition":
        kept = metadata.pop("annotations", {}).items() - KEPT.items()
        metadata |= {"annotations": dict(kept)} if kept else {}
    shown: Object = without_names(found | {"metadata": metadata})
    return shown


@pytest.mark.parametrize("overlay", sorted(one.name for one in OVERLAYS.iterdir()))
def test_the_chart_installs_what_the_overlay_installs(
    helm: Helm, installed: Kubectl, overlay: str
) -> None:
    wanted = by_name(installed("kustomize", str(OVERLAYS / overlay)))
    del wanted["Namespace", names.NAMESPACE]  # helm install --create-namespace
    found = helm.template(f"distribution={overlay}")
    del found[TEST_POD]
    assert found.keys() == wanted.keys()
    for key, one in wanted.items():
        assert comparable(found[key]) == comparable(one), key
        if key[0] == "CustomResourceDefinition":
            assert KEPT.items() <= found[key]["metadata"]["annotations"].items()
        labels = found[key]["metadata"]["labels"]
        assert one["metadata"].get("labels", {}).items() <= labels.items()


def test_selinux_is_an_option_as_it_is_a_component(helm: Helm) -> None:
    found = helm.template("selinux.enabled=true")
    for name in ("numapin-enforcer", "numapin-standby"):
        pod = found["DaemonSet", name]["spec"]["template"]["spec"]
        assert pod["securityContext"]["seLinuxOptions"] == {"type": "spc_t"}


def test_the_podmonitor_is_an_option_as_it_is_a_component(helm: Helm) -> None:
    component = ROOT / "manifests" / "components" / "podmonitor" / "podmonitor.yaml"
    wanted = yaml.safe_load(component.read_text())
    key = "PodMonitor", wanted["metadata"]["name"]
    assert key not in helm.template()
    found = helm.template("podMonitor.enabled=true")[key]
    assert comparable(found) == comparable(wanted)
    chosen = ("podMonitor.labels.release=main", "podMonitor.interval=15s")
    changed = helm.template("podMonitor.enabled=true", *chosen)[key]
    assert changed["metadata"]["labels"]["release"] == "main"
    assert changed["spec"]["podMetricsEndpoints"][0]["interval"] == "15s"


def test_the_annotation_of_pods_is_an_option_as_it_is_a_component(
    helm: Helm, installed: Kubectl, tmp_path: Path
) -> None:
    parts = [ROOT / "manifests" / "components" / "cpu-annotation", OVERLAYS / "default"]
    component, overlay = (os.path.relpath(one, tmp_path) for one in parts)
    text = f"resources: [{overlay}]\ncomponents: [{component}]\n"
    (tmp_path / "kustomization.yaml").write_text(text)
    wanted = by_name(installed("kustomize", str(tmp_path)))
    del wanted["Namespace", names.NAMESPACE]
    found = helm.template("cpuAnnotation.enabled=true")
    del found[TEST_POD]
    assert found.keys() == wanted.keys()
    added = found.keys() - helm.template().keys()
    policy_kind = "ValidatingAdmissionPolicy"
    kinds = ("ClusterRole", "ClusterRoleBinding", policy_kind, f"{policy_kind}Binding")
    assert added == {(kind, "numapin-operator-cpu-annotation") for kind in kinds}
    for key in (*added, ("Deployment", "numapin-operator")):
        assert comparable(found[key]) == comparable(wanted[key]), key
        assert found[key]["metadata"]["labels"]["app.kubernetes.io/name"] == "numapin"
    (container,) = found["Deployment", "numapin-operator"]["spec"]["template"]["spec"]["containers"]
    given = [one.replace("$(POD_NAMESPACE)", "n") for one in container["args"]]
    assert parse_operator(given, {}).annotate_pods
    policy = found[policy_kind, "numapin-operator-cpu-annotation"]
    assert names.CPUS_ANNOTATION in json.dumps(policy)


def test_the_right_to_evict_is_an_option_as_it_is_a_component(helm: Helm) -> None:
    component = ROOT / "manifests" / "components" / "eviction" / "rbac.yaml"
    wanted = by_name(component.read_text())
    assert not wanted.keys() & helm.template().keys()
    found = helm.template("eviction.enabled=true")
    for key, one in wanted.items():
        assert comparable(found[key]) == comparable(one), key


@pytest.mark.parametrize("part", ["alerts", "dashboard"])
def test_alerts_and_dashboard_are_options_as_they_are_components(
    helm: Helm, installed: Kubectl, tmp_path: Path, part: str
) -> None:
    source = os.path.relpath(ROOT / "manifests" / "components" / part, tmp_path)
    (tmp_path / "kustomization.yaml").write_text(f"components: [{source}]\n")
    ((key, wanted),) = by_name(installed("kustomize", str(tmp_path))).items()
    assert key not in helm.template()
    found = helm.template(f"{part}.enabled=true", f"{part}.labels.release=main")[key]
    assert comparable(found) == comparable(wanted)
    labels = wanted["metadata"].get("labels", {}) | {"release": "main"}
    assert labels.items() <= found["metadata"]["labels"].items()


def test_the_links_of_alerts_lead_where_the_user_keeps_the_runbooks(helm: Helm) -> None:
    chosen = ("alerts.enabled=true", "alerts.runbooks=https://example.com/runbooks")
    rules = helm.template(*chosen)["PrometheusRule", "numapin"]["spec"]["groups"][0]["rules"]
    for rule in rules:
        wanted = f"https://example.com/runbooks#{rule['alert'].lower()}"
        assert rule["annotations"]["runbook_url"] == wanted


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
    schema = json.loads((CHART / "values.schema.json").read_text())
    _compare(yaml.safe_load((CHART / "values.yaml").read_text()), schema, "values")


def _compare(value: Any, schema: Object, where: str) -> None:
    if schema.get("additionalProperties") is False and isinstance(value, dict):
        properties = schema["properties"].keys() - {"global"}
        if "resources" not in where and where != "values.nodes.tolerations":
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


def test_what_is_made_of_the_chart_is_up_to_date() -> None:
    subprocess.run([ROOT / "charts" / "generate", "--check"], check=True)


def test_the_chart_holds_its_files_itself() -> None:
    """Flux leaves symbolic links out, without an error. Source: fluxcd/flux2, issue 4088."""
    assert not [one for one in CHART.rglob("*") if one.is_symlink()]


def test_helm_finds_nothing_to_blame(helm: Helm) -> None:
    helm("lint", "--strict", str(CHART))


def test_the_version_is_that_of_the_project() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    text = (ROOT / "pyproject.toml").read_text()
    found = re.search(r'^version = "(.+)"$', text, re.MULTILINE)
    assert found is not None
    assert chart["version"] == chart["appVersion"] == found[1]


def _is_served(kubectl: Kubectl) -> bool:
    try:
        kubectl("get", "cpupolicies")
    except LabError:
        return False
    return True


@pytest.fixture(scope="module")
def cluster(
    control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    """An API server on which nothing was installed."""
    folder = tmp_path_factory.mktemp("chart")
    plane = ControlPlane(folder, ControlPlanePorts(*choose(3)), control_plane.programs)
    try:
        plane.start()
        yield plane
    finally:
        plane.stop()


def test_values_of_an_older_chart_are_kept_but_not_without_new_ones(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    """`--reuse-values` hides the defaults of new values; Helm then says which are missing."""
    older = shutil.copytree(CHART, tmp_path / "older")
    schema = json.loads((older / "values.schema.json").read_text())
    values = yaml.safe_load((older / "values.yaml").read_text())
    for known in (schema["properties"], values):
        del known["cpuAnnotation"]
    schema["required"].remove("cpuAnnotation")
    (older / "values.schema.json").write_text(json.dumps(schema))
    (older / "values.yaml").write_text(yaml.safe_dump(values))
    for name in ("operator.yaml", "operator-cpu-annotation.yaml"):
        template = older / "templates" / name
        template.write_text(template.read_text().replace(".Values.cpuAnnotation.enabled", "false"))

    helm = Helm(provide([HELM.name])[HELM.name].path, tmp_path, cluster.kubeconfig)
    helm("install", "numapin", str(older), "--create-namespace", "--set=operator.replicas=3")
    refused = helm.ask("upgrade", "numapin", str(CHART), "--reuse-values")
    assert refused.returncode != 0
    assert "missing property 'cpuAnnotation'" in refused.stderr
    helm("upgrade", "numapin", str(CHART), "--reset-then-reuse-values")
    replicas = ("get", "deploy", "-n", names.NAMESPACE, "-o", "jsonpath={.items[*].spec.replicas}")
    assert cluster.kubectl(*replicas) == "3"
    helm("uninstall", "numapin")


def test_install_upgrade_rollback_uninstall(
    cluster: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> None:
    program = provide([HELM.name])[HELM.name].path
    helm = Helm(program, tmp_path_factory.mktemp("helm"), cluster.kubeconfig)
    kubectl = cluster.kubectl
    notes = helm("install", "numapin", str(CHART), "--create-namespace")
    assert f"kubectl label namespace {names.NAMESPACE} pod-security" in notes
    eventually(lambda: _is_served(kubectl), True)
    kubectl("apply", "-f", str(ROOT / "examples" / "policy.yaml"))

    replicas = ("get", "deploy", "-n", names.NAMESPACE, "-o", "jsonpath={.items[*].spec.replicas}")
    assert kubectl(*replicas) == "2"
    helm("upgrade", "numapin", str(CHART), "--set=operator.replicas=3")
    assert kubectl(*replicas) == "3"
    helm("rollback", "numapin", "1")
    assert kubectl(*replicas) == "2"

    _run_helm_test(helm, cluster)
    second = helm.ask("install", "second", str(CHART))
    assert second.returncode != 0
    assert "invalid ownership metadata" in second.stderr

    helm("uninstall", "numapin")
    left = kubectl("get", "deploy,ds,sa,clusterrole", "-A", "-o", "name")
    assert "numapin" not in left
    assert "latency-critical" in kubectl("get", "cpupolicies", "-o", "name")
    other_name = helm.ask("install", "other", str(CHART))
    assert "invalid ownership metadata" in other_name.stderr
    helm("install", "other", str(CHART), "--take-ownership")
    assert kubectl(*replicas) == "2"


def test_helm_test_runs_the_check_with_the_rights_and_the_image_of_the_operator(
    helm: Helm,
) -> None:
    settings = ("image.registry=registry.example.com", "operator.tolerations[0].operator=Exists")
    found = helm.template(*settings, "image.pullSecrets={one}")
    pod, operator = found[TEST_POD], found["Deployment", "numapin-operator"]
    assert pod["metadata"]["annotations"]["helm.sh/hook"] == "test"
    deployed = operator["spec"]["template"]["spec"]
    for field in ("serviceAccountName", "tolerations", "imagePullSecrets", "nodeSelector"):
        assert pod["spec"][field] == deployed[field]
    assert pod["spec"]["securityContext"] == deployed["securityContext"]
    (test,), (container,) = pod["spec"]["containers"], deployed["containers"]
    assert test["image"] == container["image"]
    assert test["securityContext"] == container["securityContext"]
    assert parse_operator(test["args"], {}).check


def _run_helm_test(helm: Helm, cluster: ControlPlane) -> None:
    """`helm test` waits for the pod, whose end a kubelet would report, and says how it ended."""
    pod = ("pod", "numapin-test", "-n", names.NAMESPACE)
    for phase, status in (("Failed", 1), ("Succeeded", 0)):
        with ThreadPoolExecutor() as pool:
            test = pool.submit(helm.ask, "test", "numapin", "--timeout=120s")
            patch = ("--subresource=status", "--type=merge", "-p")
            report = json.dumps({"status": {"phase": phase}})
            eventually(lambda: _exists(cluster.kubectl, pod), True)
            cluster.kubectl("patch", *pod, *patch, report)
            assert test.result().returncode == status, test.result().stderr


def _exists(kubectl: Kubectl, pod: tuple[str, ...]) -> bool:
    """Whether the pod waits to be run."""
    shown = kubectl("get", *pod, "--ignore-not-found", "-o", "jsonpath={.status.phase}")
    return shown == "Pending"
