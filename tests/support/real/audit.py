"""Which rights a program used, by the audit log of a real API server, and which its role grants."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from numapin_api import names
from numapin_lab.controlplane.servers import ControlPlane

Right = tuple[str, str, str]
"""API group, resource with its subresource, and verb."""

MANIFESTS = Path(__file__).parents[3] / "manifests"

_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "Metadata", "userGroups": [f"system:serviceaccounts:{names.NAMESPACE}"]},
        {"level": "None"},
    ],
}

_TEST_CLIENT = "numapin/"
"""How the clients of tests name themselves, which log in with a program's account."""


def audit_flags(folder: Path) -> tuple[str, ...]:
    """Flags of an API server that writes down each request of our service accounts."""
    policy = folder / "audit.yaml"
    policy.write_text(yaml.safe_dump(_POLICY))
    return (f"--audit-policy-file={policy}", f"--audit-log-path={_log(folder)}")


def _log(folder: Path) -> Path:
    return folder / "audit.log"


class Audit:
    """The requests about objects that the programs with one account have sent since now."""

    def __init__(self, plane: ControlPlane, account: str) -> None:
        self._log = _log(plane.folder)
        self._user = f"system:serviceaccount:{names.NAMESPACE}:{account}"
        self._start = self._log.stat().st_size if self._log.exists() else 0

    def used(self) -> set[Right]:
        """The rights that the requests needed."""
        return set(self.counts())

    def counts(self) -> Counter[Right]:
        """How many requests needed each right."""
        return Counter(map(_right, self._events()))

    def forbidden(self) -> list[dict[str, Any]]:
        """The requests that were forbidden."""
        return [one for one in self._events() if one["responseStatus"]["code"] == 403]

    def _events(self) -> Iterator[dict[str, Any]]:
        with self._log.open("rb") as log:
            log.seek(self._start)
            lines = log.read().splitlines(keepends=True)
        for line in lines:
            event = json.loads(line) if line.endswith(b"\n") else {}
            if event.get("user", {}).get("username") != self._user:
                continue
            is_about_objects = "resource" in event.get("objectRef", {})
            if is_about_objects and not event["userAgent"].startswith(_TEST_CLIENT):
                yield event


def _right(event: Mapping[str, Any]) -> Right:
    about = event["objectRef"]
    parts = (about["resource"], about.get("subresource"))
    resource = "/".join(part for part in parts if part)
    return about.get("apiGroup", ""), resource, event["verb"]


def granted(manifest: str) -> set[Right]:
    """The rights that the roles of a manifest grant; its path is relative to `manifests`."""
    return {
        (group, resource, verb)
        for document in yaml.safe_load_all((MANIFESTS / manifest).read_text())
        for rule in document.get("rules", ())
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
