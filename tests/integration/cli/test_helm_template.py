"""`numapin plan` and `numapin explain` of what a real `helm template` prints of a small chart."""

import json
from pathlib import Path
from typing import Final

import pytest

from numapin_cli.main import main
from numapin_lab.components.build import provide
from numapin_lab.components.catalog import HELM
from support.fakes.worlds.described_cluster import cluster
from support.real.installing.helm import Helm

Capture = pytest.CaptureFixture[str]

CONTAINERS: Final = "{containers: [{name: c, resources: {limits: {cpu: 1, memory: 64Mi}}}]}"
TEMPLATE: Final = f"template: {{metadata: {{labels: {{a: b}}}}, spec: {CONTAINERS}}}"
FILES: Final = {
    "Chart.yaml": "{apiVersion: v2, name: shop, version: 1.0.0}",
    "values.yaml": "{replicas: 2, extra: false}",
    "crds/crd.yaml": "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition,"
    " metadata: {name: as.example.com}}",
    "templates/NOTES.txt": "Installed.",
    "templates/_helpers.tpl": '{{- define "shop.name" -}}{{ .Release.Name }}-web{{- end -}}',
    "templates/empty.yaml": "{{- if .Values.extra }}\nkind: ConfigMap\n{{- end }}\n",
    "templates/comments.yaml": "# nothing but a comment\n---\n# and another one\n---\n",
    "templates/web.yaml": f"""\
# The web servers.
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{{{ include "shop.name" . }}}}
  namespace: {{{{ .Release.Namespace }}}}
spec: {{replicas: {{{{ .Values.replicas }}}}, {TEMPLATE}}}
---
apiVersion: v1
kind: Service
metadata: {{name: web}}
---

---
apiVersion: v1
kind: List
items:
- {{apiVersion: batch/v1, kind: Job, metadata: {{name: load}}, spec: {{{TEMPLATE}}}}}
- {{apiVersion: v1, kind: ConfigMap, metadata: {{name: web}}}}
""",
    "templates/hook.yaml": f"""\
apiVersion: batch/v1
kind: Job
metadata: {{name: migrate, annotations: {{"helm.sh/hook": "pre-upgrade,pre-install"}}}}
spec: {{{TEMPLATE}}}
""",
    "templates/tests/test.yaml": f"""\
apiVersion: v1
kind: Pod
metadata: {{name: "{{{{ .Release.Name }}}}-test", annotations: {{"helm.sh/hook": test}}}}
spec: {CONTAINERS}
""",
}


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with what helm prints."""
    folder = tmp_path_factory.mktemp("chart")
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    helm = Helm(provide([HELM.name])[HELM.name].path, tmp_path_factory.mktemp("helm"))
    file = folder / "printed.yaml"
    file.write_text(helm("template", "shop", str(folder), "--include-crds"))
    return file


def run(command: str, printed: Path, *more: str) -> int:
    now = printed.with_name("now.json")
    now.write_text(cluster().dump())
    files = ["-f", str(printed), "--cluster", str(now)]
    return main([command, *files, "--node", "node-1", "-o", "json", *more])


def test_every_pod_but_those_of_hooks_is_planned(printed: Path, capsys: Capture) -> None:
    assert run("plan", printed) == 0
    captured = capsys.readouterr()
    (node,) = json.loads(captured.out)["nodes"]
    pods = sorted(one["pod"].rpartition("-")[0] for one in node["spec"]["containers"])
    assert [name.rpartition("-")[0] for name in pods[1:]] == ["shop-web", "shop-web"]
    assert pods[0] == "load"
    said = captured.err.splitlines()
    assert sorted(one for one in said if "hook of Helm" in one) == [
        "left out: Job default/migrate: a hook of Helm, which runs and ends at another time",
        "left out: Pod default/shop-test: a hook of Helm, which runs and ends at another time",
    ]
    assert said[-1] == (
        "left out: 1 ConfigMap, 1 CustomResourceDefinition, 1 Service:"
        " nothing is planned for these kinds"
    )


def test_one_pod_of_each_workload_is_explained(printed: Path, capsys: Capture) -> None:
    assert run("explain", printed) == 0
    found = json.loads(capsys.readouterr().out)["explanations"]
    assert sorted(one["subject"].split("/")[1].split("-")[0] for one in found) == ["load", "shop"]
