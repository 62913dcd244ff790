"""The chart as a package, and what it makes of the alerts and of `helm test`."""

import re
from pathlib import Path

import pytest
import yaml

from numapin_operator.settings import parse_settings as parse_operator
from support.real.installing.helm import CHART, PRESETS, Helm

ROOT = Path(__file__).parents[4]
TEST_POD = ("Pod", "numapin-test")


def test_the_links_of_alerts_lead_where_the_user_keeps_the_runbooks(helm: Helm) -> None:
    chosen = ("alerts.enabled=true", "alerts.runbooks=https://example.com/runbooks")
    rules = helm.template(*chosen)["PrometheusRule", "numapin"]["spec"]["groups"][0]["rules"]
    for rule in rules:
        wanted = f"https://example.com/runbooks#{rule['alert'].lower()}"
        assert rule["annotations"]["runbook_url"] == wanted


def test_the_chart_holds_its_files_itself() -> None:
    """Flux leaves symbolic links out, without an error. Source: fluxcd/flux2, issue 4088."""
    assert not [one for one in CHART.rglob("*") if one.is_symlink()]


@pytest.mark.parametrize("preset", [None, *sorted(one.stem for one in PRESETS.iterdir())])
def test_helm_finds_nothing_to_blame(helm: Helm, preset: str | None) -> None:
    values = [] if preset is None else [f"--values={PRESETS / preset}.yaml"]
    helm("lint", "--strict", str(CHART), *values)


def test_the_version_is_that_of_the_project() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    text = (ROOT / "pyproject.toml").read_text()
    found = re.search(r'^version = "(.+)"$', text, re.MULTILINE)
    assert found is not None
    assert chart["version"] == chart["appVersion"] == found[1]


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
