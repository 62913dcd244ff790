"""Install the manifests of numapin without its pods, which are processes in a lab."""

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from numapin_lab.controlplane.api import AnswerError
from numapin_lab.controlplane.servers import ControlPlane
from numapin_lab.processes.daemons import wait_until

MANIFESTS = Path(__file__).resolve().parents[3] / "manifests" / "base"
WORKLOADS = frozenset({"Deployment", "DaemonSet"})
ESTABLISH_SECONDS = 120


def without_workloads(documents: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """All documents except Deployments and DaemonSets."""
    return [document for document in documents if document["kind"] not in WORKLOADS]


def install(plane: ControlPlane, manifests: Path = MANIFESTS) -> None:
    """Apply custom resources, accounts, roles and admission policy; returns when served."""
    rendered = plane.kubectl("kustomize", str(manifests))
    documents = without_workloads(yaml.safe_load_all(rendered))
    plane.kubectl("apply", "--server-side", "-f", "-", text=yaml.safe_dump_all(documents))
    names = [
        document["metadata"]["name"]
        for document in documents
        if document["kind"] == "CustomResourceDefinition"
    ]
    for name in names:
        wait_until(partial(_served, plane, name), name, ESTABLISH_SECONDS)


def _served(plane: ControlPlane, name: str) -> bool:
    """Whether the API server serves every version of the custom resource."""
    plural, _, group = name.partition(".")
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}"
    versions = [one["name"] for one in plane.api.get(path)["spec"]["versions"] if one["served"]]
    try:
        for version in versions:
            plane.api.get(f"/apis/{group}/{version}/{plural}")
    except AnswerError:
        return False
    return True
