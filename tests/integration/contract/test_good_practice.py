"""kube-score finds nothing in what is applied, but for exceptions that the manifests explain."""

import json
import subprocess
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from numapin_api import names
from numapin_lab.components.build import provide
from numapin_lab.components.catalog import KUBE_SCORE
from numapin_lab.controlplane.kubectl import Kubectl
from support.real.installing.helm import Helm

ROOT = Path(__file__).parents[3]
OVERLAYS = ROOT / "manifests" / "overlays"
DISTRIBUTIONS = sorted(one.name for one in OVERLAYS.iterdir())
OLDEST = "v1.30"
ALL_OK = 10
TEST_POD = "numapin-test"

BASE = ROOT / "manifests" / "base"
EVERYWHERE = {
    "container-ephemeral-storage-request-and-limit": "# No CPU limit:",
    "container-image-pull-policy": "# No imagePullPolicy Always:",
    "container-resources": "# No CPU limit:",
}
AS_ROOT = {"container-security-context-user-group-id": "# root owns the runtime's socket"}
EXCEPTIONS = {
    "operator": EVERYWHERE,
    "enforcer": EVERYWHERE | AS_ROOT,
    "standby": EVERYWHERE | {**AS_ROOT, "container-security-context-user-group-id": "# As for"},
}
"""Check that is not heeded, and how the comment beside the field begins."""

GIVEN_BY_OPENSHIFT = {"container-security-context-user-group-id"}
"""The operator's user is one of its namespace's range."""

Score = Callable[..., dict[str, set[str]]]


@pytest.fixture(scope="module")
def kube_score() -> Score:
    """What it blames objects for, by their name."""
    program = str(provide([KUBE_SCORE.name])[KUBE_SCORE.name].path)

    def score(manifests: str, *options: str) -> dict[str, set[str]]:
        command = [program, "score", "--output-format=json", f"--kubernetes-version={OLDEST}"]
        answer = subprocess.run(
            [*command, *options, "-"],
            input=manifests,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert answer.stdout, answer.stderr
        found: dict[str, set[str]] = defaultdict(set)
        for one in json.loads(answer.stdout):
            found[one["object_meta"]["name"]] |= {
                check["check"]["id"]
                for check in one["checks"]
                if not check["skipped"] and check["grade"] < ALL_OK
            }
        return dict(found)

    return score


@pytest.fixture(params=[(kind, one) for kind in ("overlay", "chart") for one in DISTRIBUTIONS])
def manifests(request: pytest.FixtureRequest, installed: Kubectl, helm: Helm) -> str:
    """All that is applied for a distribution, in one of both ways."""
    kind, distribution = request.param
    if kind == "overlay":
        return installed("kustomize", str(OVERLAYS / distribution))
    return helm.preset(distribution)


def test_nothing_is_blamed_but_what_is_explained(kube_score: Score, manifests: str) -> None:
    judged = kube_score(manifests)
    workloads = {f"numapin-{name}" for name in EXCEPTIONS}
    assert judged.keys() - {TEST_POD} == workloads
    given = GIVEN_BY_OPENSHIFT if "SecurityContextConstraints" in manifests else set()
    assert set().union(*judged.values()) == given
    blamed = kube_score(manifests, "--disable-ignore-checks-annotations")
    for name, checks in EXCEPTIONS.items():
        assert blamed[f"numapin-{name}"] == checks.keys() | given, "no exception is in vain"


@pytest.mark.parametrize("name", EXCEPTIONS)
def test_each_exception_is_explained_in_the_manifest(name: str) -> None:
    text = (BASE / f"{name}.yaml").read_text()
    for check, comment in EXCEPTIONS[name].items():
        assert check in text
        assert comment in text, check


def test_resources_lack_nothing_but_what_is_explained(manifests: str) -> None:
    """kube-score does not heed them."""
    workloads = [one for one in yaml.safe_load_all(manifests) if "template" in one.get("spec", {})]
    assert len(workloads) == len(EXCEPTIONS)
    for one in workloads:
        (container,) = one["spec"]["template"]["spec"]["containers"]
        assert container["resources"]["requests"].keys() == {"cpu", "memory"}
        assert container["resources"]["limits"].keys() == {"memory"}


def test_a_flaw_is_found(kube_score: Score, installed: Kubectl) -> None:
    """So the test above can fail."""
    text = installed("kustomize", str(OVERLAYS / "default"))
    flawed = text.replace("readOnlyRootFilesystem: true", "readOnlyRootFilesystem: false")
    assert kube_score(flawed)["numapin-enforcer"] == {
        "container-security-context-readonlyrootfilesystem"
    }


@pytest.mark.usefixtures("openshift")
def test_the_api_server_knows_every_field(installed: Kubectl, manifests: str) -> None:
    strict = ("--dry-run=server", "--validate=strict", "--force-conflicts")
    applied = installed("apply", "--server-side", *strict, "-f", "-", text=manifests)
    assert f"daemonset.apps/{names.ENFORCER_SERVICE_ACCOUNT} serverside-applied" in applied
