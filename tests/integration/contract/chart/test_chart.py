"""The Helm chart installs what the manifests install."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from numapin_api import names
from numapin_enforcer.settings import parse_settings as parse_enforcer
from numapin_lab.controlplane.kubectl import Kubectl
from numapin_operator.settings import parse_settings as parse_operator
from support.real.installing.helm import PRESETS, Helm, Object, by_name

ROOT = Path(__file__).parents[4]
OVERLAYS = ROOT / "manifests" / "overlays"
TEST_POD = ("Pod", "numapin-test")
KEPT = {"helm.sh/resource-policy": "keep"}


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


def add_component(folder: Path, name: str) -> None:
    """Make `folder` the default overlay with one component more."""
    parts = [ROOT / "manifests" / "components" / name, OVERLAYS / "default"]
    component, overlay = (os.path.relpath(one, folder) for one in parts)
    text = f"resources: [{overlay}]\ncomponents: [{component}]\n"
    (folder / "kustomization.yaml").write_text(text)


@pytest.mark.parametrize("overlay", sorted(one.name for one in OVERLAYS.iterdir()))
def test_the_chart_installs_what_the_overlay_installs(
    helm: Helm, installed: Kubectl, overlay: str
) -> None:
    wanted = by_name(installed("kustomize", str(OVERLAYS / overlay)))
    del wanted["Namespace", names.NAMESPACE]  # helm install --create-namespace
    found = by_name(helm.preset(overlay))
    del found[TEST_POD]
    assert found.keys() == wanted.keys()
    for key, one in wanted.items():
        assert comparable(found[key]) == comparable(one), key
        if key[0] == "CustomResourceDefinition":
            assert KEPT.items() <= found[key]["metadata"]["annotations"].items()
        labels = found[key]["metadata"]["labels"]
        assert one["metadata"].get("labels", {}).items() <= labels.items()


def test_each_overlay_is_a_preset() -> None:
    presets = {one.stem for one in PRESETS.iterdir()}
    assert presets | {"default"} == {one.name for one in OVERLAYS.iterdir()}


def test_selinux_is_an_option_as_it_is_a_component(helm: Helm) -> None:
    found = helm.template("selinux.enabled=true")
    for name in ("numapin-enforcer", "numapin-standby"):
        pod = found["DaemonSet", name]["spec"]["template"]["spec"]
        assert pod["securityContext"]["seLinuxOptions"] == {"type": "spc_t"}


def test_the_kubelets_devices_can_be_left_out(helm: Helm) -> None:
    key = ("DaemonSet", "numapin-enforcer")
    mounted, bare = (
        json.dumps(helm.template(f"podResources.enabled={one}")[key]) for one in ("true", "false")
    )
    assert "--pod-resources-socket=/host/pod-resources/kubelet.sock" in mounted
    assert "pod-resources" not in bare


def test_answers_for_exporters_are_an_option_as_they_are_a_component(
    helm: Helm, installed: Kubectl, tmp_path: Path
) -> None:
    add_component(tmp_path, "pod-resources")
    key = ("DaemonSet", "numapin-enforcer")
    wanted = by_name(installed("kustomize", str(tmp_path)))[key]
    found = helm.template("podResources.serve=true")[key]
    given, named = (one["spec"]["template"]["spec"]["containers"][0] for one in (found, wanted))
    args = named.pop("args")
    assert sorted(given.pop("args")) == sorted(args)
    assert comparable(found) == comparable(wanted)
    settings = parse_enforcer(args, {"NODE_NAME": "n"})
    assert str(settings.serve_pod_resources) == "/run/numapin/pod-resources/kubelet.sock"
    assert "--serve-pod-resources" not in json.dumps(helm.template()[key])


def test_metrics_of_cpus_are_an_option_as_they_are_a_component(
    helm: Helm, installed: Kubectl, tmp_path: Path
) -> None:
    add_component(tmp_path, "cpu-metrics")
    wanted = by_name(installed("kustomize", str(tmp_path)))
    found, role = helm.template("cpuMetrics.enabled=true"), ("Role", "numapin-check")
    assert found.keys() - helm.template().keys() == {role}
    assert comparable(found[role]) == comparable(wanted[role])
    given, named = (
        one["DaemonSet", "numapin-enforcer"]["spec"]["template"]["spec"] for one in (found, wanted)
    )
    args = [one["containers"][0].pop("args") for one in (given, named)]
    assert sorted(args[0]) == sorted(args[1])
    assert without_names(given) == without_names(named)
    settings = parse_enforcer(args[0], {"NODE_NAME": "n"})
    assert (settings.cpu_metrics, str(settings.interrupts)) == (True, "/host/interrupts")


@pytest.mark.parametrize(
    ("name", "folders"),
    [
        ("interrupts", {"irq_dir": "/host/irq", "workqueue_dir": "/host/workqueue"}),
        ("resctrl", {"resctrl_dir": "/host/fs"}),
    ],
)
def test_folders_of_the_kernel_are_an_option_as_they_are_a_component(
    helm: Helm, installed: Kubectl, tmp_path: Path, name: str, folders: dict[str, str]
) -> None:
    add_component(tmp_path, name)
    key = ("DaemonSet", "numapin-enforcer")
    wanted = by_name(installed("kustomize", str(tmp_path)))[key]
    found = helm.template(f"{name}.enabled=true")[key]
    given, named = (one["spec"]["template"]["spec"]["containers"][0] for one in (found, wanted))
    args = named.pop("args")
    assert sorted(given.pop("args")) == sorted(args)
    assert comparable(found) == comparable(wanted)
    settings = parse_enforcer(args, {"NODE_NAME": "n"})
    mounts = {one["mountPath"] for one in named["volumeMounts"]}
    for field, mount in folders.items():
        assert Path(getattr(settings, field)).is_relative_to(mount)
        assert mount in mounts
        assert mount not in json.dumps(helm.template()[key])


def test_partitions_are_an_option_as_they_are_a_component(
    helm: Helm, installed: Kubectl, tmp_path: Path
) -> None:
    add_component(tmp_path, "partitions")
    wanted = by_name(installed("kustomize", str(tmp_path)))
    for one in (helm.template("partitions.enabled=true"), wanted):
        (container,) = one["DaemonSet", "numapin-enforcer"]["spec"]["template"]["spec"][
            "containers"
        ]
        rights = container["securityContext"]["capabilities"]
        assert rights["add"] == ["DAC_OVERRIDE", "SYS_NICE", "SYS_ADMIN"]


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
    add_component(tmp_path, "cpu-annotation")
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


def test_holding_pods_is_an_option_as_it_is_a_component(helm: Helm) -> None:
    folder = ROOT / "manifests" / "components" / "holding"
    texts = [(folder / f"{one}.yaml").read_text() for one in ("rbac", "admission", "gate")]
    wanted = by_name("---\n".join(texts))
    found = helm.template("holding.enabled=true")
    assert found.keys() - helm.template().keys() == wanted.keys()
    for key, body in wanted.items():
        assert comparable(found[key]) == comparable(body), key
    older = helm.template("holding.enabled=true", "holding.setGates=false")
    assert older.keys() == found.keys() - by_name(texts[2]).keys()


def test_kubevirts_label_is_an_option_as_it_is_a_component(helm: Helm) -> None:
    component = ROOT / "manifests" / "components" / "kubevirt" / "label.yaml"
    wanted = by_name(component.read_text())
    found = helm.template("kubevirt.enabled=true")
    assert found.keys() - helm.template().keys() == wanted.keys()
    for key, one in wanted.items():
        assert comparable(found[key]) == comparable(one), key


def test_the_right_to_evict_is_an_option_as_it_is_a_component(helm: Helm) -> None:
    component = ROOT / "manifests" / "components" / "eviction" / "rbac.yaml"
    wanted = by_name(component.read_text())
    assert not wanted.keys() & helm.template().keys()
    found = helm.template("eviction.enabled=true")
    for key, one in wanted.items():
        assert comparable(found[key]) == comparable(one), key


def test_node_resource_topologies_are_an_option_as_they_are_a_component(helm: Helm) -> None:
    folder = ROOT / "manifests" / "components" / "node-resource-topology"
    wanted = by_name((folder / "rbac.yaml").read_text())
    assert not wanted.keys() & helm.template().keys()
    found = helm.template("nodeResourceTopology.enabled=true")
    for key, one in wanted.items():
        assert comparable(found[key]) == comparable(one), key
    (container,) = found["Deployment", "numapin-operator"]["spec"]["template"]["spec"]["containers"]
    given = [one.replace("$(POD_NAMESPACE)", "n") for one in container["args"]]
    assert parse_operator(given, {}).publish_topologies
    assert f"value: {container['args'][-1]}" in (folder / "kustomization.yaml").read_text()


def test_shards_are_an_option_as_they_are_a_component(helm: Helm) -> None:
    component = ROOT / "manifests" / "components" / "shards" / "rbac.yaml"
    wanted = by_name(component.read_text())
    assert not wanted.keys() & helm.template().keys()
    found = helm.template("operator.shards=4")
    for key, one in wanted.items():
        assert comparable(found[key]) == comparable(one), key
    (container,) = found["Deployment", "numapin-operator"]["spec"]["template"]["spec"]["containers"]
    given = [one.replace("$(POD_NAMESPACE)", "n") for one in container["args"]]
    assert parse_operator(given, {}).shards == 4


def test_what_view_takes_in_is_an_option_as_it_is_a_component(
    helm: Helm, installed: Kubectl, tmp_path: Path
) -> None:
    add_component(tmp_path, "aggregate-to-view")
    key = "ClusterRole", "numapin-viewer"
    wanted = by_name(installed("kustomize", str(tmp_path)))[key]
    labels = helm.template("viewer.aggregateToView=true")[key]["metadata"]["labels"]
    assert wanted["metadata"]["labels"].items() <= labels.items()
    added = labels.items() - helm.template()[key]["metadata"]["labels"].items()
    assert added == {("rbac.authorization.k8s.io/aggregate-to-view", "true")}


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
