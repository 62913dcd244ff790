"""Objects of numapin 0.1, which are `v1alpha1`, on a real API server: forth and back."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import yaml

from numapin_api import names
from numapin_api.cpupolicy import CpuPolicySpec
from numapin_api.schema.definitions import definitions
from numapin_lab.controlplane.api import AnswerError
from numapin_lab.controlplane.installation import install
from numapin_lab.controlplane.servers import ControlPlane
from numapin_lab.running_lab import eventually
from support.real.installing.own_plane import own_plane

OLD = f"{names.GROUP}/{names.ALPHA}"
FORCED = ("--server-side", "--force-conflicts")
ALONE = ("--health-address=127.0.0.1:0", "--no-leader-elect")
WITHOUT_FIELD_OWNERS = '{"metadata": {"managedFields": [{}]}}'
"""As docs/upgrading.md has it: the API server applies no object with an owner of fields of a
version that is not served (kubernetes/kubernetes issue 111937).
"""
REMEDY = b"is not served: if this lasts, apply the CRDs of this version first"
POLICY = {
    "nodeSelector": {"pool": "latency"},
    "reserved": {"count": 2},
    "topology": {"policy": "BestEffort", "maxAllowableNUMANodes": 16},
    "memory": {"policy": "Static", "reserved": [{"numaNode": 0, "memory": "1Gi"}]},
    "releaseDelay": "5m",
}
ASSIGNMENT = {
    "policy": {"name": "fast", "generation": 3},
    "pools": {"reserved": "0", "shared": "0-1"},
    "releaseAt": "2026-01-01T00:00:00Z",
}


@pytest.fixture(scope="module")
def plane(
    control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    """One of this module's own: a test goes back to older CRDs."""
    with own_plane(tmp_path_factory.mktemp("versions"), control_plane.programs) as made:
        install(made)
        yield made


def manifest(kind: str, name: str, spec: dict[str, Any], version: str = OLD) -> str:
    """An object as a file."""
    typed = {"apiVersion": version, "kind": kind, "metadata": {"name": name}}
    return yaml.safe_dump({**typed, "spec": spec})


def path_of(version: str, plural: str, name: str = "") -> str:
    """The path of an object, or of all."""
    return f"/apis/{version}/{plural}/{name}".rstrip("/")


def both_specs(plane: ControlPlane, plural: str, name: str) -> tuple[Any, Any]:
    """The spec of an object, read as each version."""
    both = [plane.api.get(path_of(one, plural, name)) for one in (OLD, names.API_VERSION)]
    assert [one["apiVersion"] for one in both] == [OLD, names.API_VERSION]
    assert both[0]["metadata"]["generation"] == both[1]["metadata"]["generation"]
    return both[0]["spec"], both[1]["spec"]


def says(found: Any, written: Any) -> bool:
    """Whether all that was written is found, besides what the API server filled in."""
    if isinstance(written, dict):
        return all(key in found and says(found[key], one) for key, one in written.items())
    if isinstance(written, list):
        return len(found) == len(written) and all(map(says, found, written))
    return bool(found == written)


@pytest.mark.parametrize("server_side", [(), ("--server-side",)], ids=["client", "server"])
def test_a_manifest_of_01_is_edited_as_v1beta1_and_applied_again(
    plane: ControlPlane, server_side: tuple[str, ...]
) -> None:
    name, kubectl = f"old{len(server_side)}", plane.kubectl
    text = manifest("CpuPolicy", name, POLICY)
    kubectl("apply", *server_side, "-f", "-", text=text)
    was, reads = both_specs(plane, "cpupolicies", name)
    assert was == reads
    assert says(was, POLICY)

    new = f"cpupolicies.{names.VERSION}.{names.GROUP}"
    kubectl("patch", new, name, "--type=merge", "-p", '{"spec": {"priority": 7}}')
    was, reads = both_specs(plane, "cpupolicies", name)
    assert was == reads
    assert was["priority"] == 7
    path = path_of(names.API_VERSION, "cpupolicies", name)
    body = plane.api.get(path) | {"status": {"nodesSelected": 3}}
    plane.api.request("PUT", f"{path}/status", body)
    was, reads = both_specs(plane, "cpupolicies", name)
    assert was == reads
    assert says(was, POLICY), "a field that v1beta1 lacked would be gone from the spec by now"

    before = plane.api.get(path_of(OLD, "cpupolicies", name))["metadata"]
    kubectl("apply", *server_side, "-f", "-", text=text)
    kubectl("diff", *server_side, "-f", "-", text=text)
    after = plane.api.get(path_of(OLD, "cpupolicies", name))
    assert after["metadata"]["generation"] == before["generation"], "nothing of it had changed"
    assert after["spec"]["priority"] == 7

    moved = manifest("CpuPolicy", name, {**POLICY, "releaseDelay": "6m"}, names.API_VERSION)
    kubectl("apply", *server_side, "-f", "-", text=moved)
    kubectl("diff", *server_side, "-f", "-", text=moved)
    was, reads = both_specs(plane, "cpupolicies", name)
    assert (was["releaseDelay"], reads["releaseDelay"]) == ("6m", "6m")


def test_the_defaults_of_all_settings_are_seen(plane: ControlPlane) -> None:
    text = manifest("CpuPolicy", "empty", {}, names.API_VERSION)
    made = json.loads(plane.kubectl("create", "-f", "-", "-o", "json", text=text))["spec"]
    assert says(made, {"topology": {"policy": "None", "scope": "Container"}})
    assert says(made, {"memory": {"policy": "None"}, "pods": {"qosClasses": ["Guaranteed"]}})
    assert says(made, {"rollout": {"maxConcurrent": "10%"}, "reserved": {"strict": False}})
    assert says(made, {"options": {"fullPCPUsOnly": False}, "dynamic": {"notice": "1s"}})
    assert "maxAllowableNUMANodes" not in made["topology"]
    assert CpuPolicySpec.model_validate(made, extra="forbid") == CpuPolicySpec()


def test_an_assignment_keeps_status_and_owner_whatever_version_writes(plane: ControlPlane) -> None:
    made = plane.api.request(
        "POST",
        path_of(names.API_VERSION, "nodeassignments"),
        yaml.safe_load(manifest("NodeAssignment", "node-1", ASSIGNMENT, names.API_VERSION)),
    )
    was, reads = both_specs(plane, "nodeassignments", "node-1")
    assert was == reads
    assert says(was, ASSIGNMENT)
    for version, drift in ((OLD, 1), (names.API_VERSION, 2)):
        path = path_of(version, "nodeassignments", "node-1")
        body = plane.api.get(path) | {"status": {"driftCount": drift}}
        plane.api.request("PUT", f"{path}/status", body)
        for one in (OLD, names.API_VERSION):
            found = plane.api.get(path_of(one, "nodeassignments", "node-1"))
            assert found["status"]["driftCount"] == drift
            assert found["metadata"]["uid"] == made["metadata"]["uid"]
            assert found["metadata"]["generation"] == 1


def test_the_old_version_warns_and_the_new_one_does_not(plane: ControlPlane) -> None:
    for plural, kind in (("cpupolicies", "CpuPolicy"), ("nodeassignments", "NodeAssignment")):
        wanted = f"{OLD} {kind} is deprecated; use {names.API_VERSION}"
        assert wanted in plane.api.headers(path_of(OLD, plural))["Warning"]
        assert plane.api.headers(path_of(names.API_VERSION, plural))["Warning"] is None
    preferred = plane.api.get(f"/apis/{names.GROUP}")["preferredVersion"]["version"]
    assert preferred == names.VERSION, "what kubectl asks for"


def of_01(definition: dict[str, Any]) -> dict[str, Any]:
    """A definition as release 0.1 has it: with one version."""
    versions = [one for one in definition["spec"]["versions"] if one["name"] == names.ALPHA]
    kept = {"deprecated": None, "deprecationWarning": None}
    (version,) = ({key: one[key] for key in one if key not in kept} for one in versions)
    return definition | {"spec": definition["spec"] | {"versions": [version]}}


def served(plane: ControlPlane, version: str) -> bool:
    """Whether both kinds are served as a version."""
    try:
        for plural in ("cpupolicies", "nodeassignments"):
            plane.api.get(path_of(version, plural))
    except AnswerError:
        return False
    return True


@contextmanager
def started(plane: ControlPlane, module: str, *options: str) -> Iterator[Iterator[bytes]]:
    """Run one of our programs, with all rights; yields the lines of its output."""
    process = subprocess.Popen(
        [sys.executable, "-m", module, *options, f"--kubeconfig={plane.kubeconfig}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=os.environ | {"KUBECONFIG": ""},
    )
    assert process.stdout is not None
    try:
        yield iter(process.stdout)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_back_to_the_crds_of_01_and_forth(plane: ControlPlane) -> None:
    kubectl, new = plane.kubectl, definitions()
    kept = [one for one in new.values() if len(one["spec"]["versions"]) > 1]
    assert len(kept) == 2, "0.1 has two kinds"
    text = manifest("CpuPolicy", "made-later", POLICY, names.API_VERSION)
    kubectl("apply", "--server-side", "-f", "-", text=text)
    before = plane.api.get(path_of(OLD, "cpupolicies", "made-later"))
    for definition in kept:
        crd = kubectl.get("crd", definition["metadata"]["name"])
        assert crd["status"]["storedVersions"] == [names.ALPHA]
    kubectl("patch", "cpupolicy", "made-later", "--type=merge", "-p", WITHOUT_FIELD_OWNERS)
    kubectl("apply", *FORCED, "-f", "-", text=yaml.safe_dump_all(map(of_01, kept)))
    eventually(lambda: served(plane, names.API_VERSION), False)

    after = plane.api.get(path_of(OLD, "cpupolicies", "made-later"))
    assert (after["spec"], after["metadata"]["uid"]) == (before["spec"], before["metadata"]["uid"])
    kubectl("apply", *FORCED, "-f", "-", text=manifest("CpuPolicy", "made-later", POLICY))

    with started(plane, "numapin_operator", *ALONE) as operator:
        assert b"kubectl apply -k crds" in next(one for one in operator if REMEDY in one)
        with started(plane, "numapin_operator", "--check") as check:
            assert any(REMEDY in one for one in check)
        with started(plane, "numapin_cli.main", "get") as get:
            assert b"apply the CRDs of this version first" in b"".join(get)
        kubectl("apply", *FORCED, "-f", "-", text=yaml.safe_dump_all(new.values()))
        assert any(b"listed everything" in one for one in operator)
    again = plane.api.get(path_of(names.API_VERSION, "cpupolicies", "made-later"))
    assert (again["spec"], again["metadata"]["uid"]) == (before["spec"], before["metadata"]["uid"])
