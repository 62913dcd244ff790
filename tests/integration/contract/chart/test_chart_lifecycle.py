"""The real Helm installs, upgrades and removes the chart, on a real API server."""

import json
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml

from numapin_api import names
from numapin_lab.components.build import provide
from numapin_lab.components.catalog import HELM
from numapin_lab.controlplane.kubectl import Kubectl
from numapin_lab.controlplane.servers import ControlPlane
from numapin_lab.errors import LabError
from numapin_lab.running_lab import eventually
from support.real.installing.helm import CHART, Helm
from support.real.installing.own_plane import own_plane

ROOT = Path(__file__).parents[4]


def _is_served(kubectl: Kubectl) -> bool:
    try:
        kubectl("get", "cpupolicies")
    except LabError:
        return False
    return True


@pytest.fixture(scope="module")
def plane(
    control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    """An API server on which nothing was installed."""
    with own_plane(tmp_path_factory.mktemp("chart"), control_plane.programs) as plane:
        yield plane


@pytest.fixture(scope="module")
def helm(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Helm:
    home = tmp_path_factory.mktemp("helm")
    return Helm(provide([HELM.name])[HELM.name].path, home, plane.kubeconfig)


def test_values_of_an_older_chart_are_kept_but_not_without_new_ones(
    plane: ControlPlane, helm: Helm, tmp_path: Path
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
    for name in ("_args.tpl", "operator-cpu-annotation.yaml"):
        template = older / "templates" / name
        template.write_text(template.read_text().replace(".Values.cpuAnnotation.enabled", "false"))

    helm("install", "numapin", str(older), "--create-namespace", "--set=operator.replicas=3")
    refused = helm.ask("upgrade", "numapin", str(CHART), "--reuse-values")
    assert refused.returncode != 0
    assert "missing property 'cpuAnnotation'" in refused.stderr
    helm("upgrade", "numapin", str(CHART), "--reset-then-reuse-values")
    replicas = ("get", "deploy", "-n", names.NAMESPACE, "-o", "jsonpath={.items[*].spec.replicas}")
    assert plane.kubectl(*replicas) == "3"
    helm("uninstall", "numapin")


def test_install_upgrade_rollback_uninstall(plane: ControlPlane, helm: Helm) -> None:
    kubectl = plane.kubectl
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

    _run_helm_test(helm, plane)
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


def _run_helm_test(helm: Helm, plane: ControlPlane) -> None:
    """`helm test` waits for the pod, whose end a kubelet would report, and says how it ended."""
    pod = ("pod", "numapin-test", "-n", names.NAMESPACE)
    for phase, status in (("Failed", 1), ("Succeeded", 0)):
        with ThreadPoolExecutor() as pool:
            test = pool.submit(helm.ask, "test", "numapin", "--timeout=120s")
            patch = ("--subresource=status", "--type=merge", "-p")
            report = json.dumps({"status": {"phase": phase}})
            eventually(lambda: _exists(plane.kubectl, pod), True)
            plane.kubectl("patch", *pod, *patch, report)
            assert test.result().returncode == status, test.result().stderr


def _exists(kubectl: Kubectl, pod: tuple[str, ...]) -> bool:
    """Whether the pod waits to be run."""
    shown = kubectl("get", *pod, "--ignore-not-found", "-o", "jsonpath={.status.phase}")
    return shown == "Pending"
