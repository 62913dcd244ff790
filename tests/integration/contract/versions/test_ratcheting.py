"""Values of 0.1 that only stall a policy: refused in new objects, let be in those that have one."""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest
import yaml

from numapin_api import names
from numapin_api.schema.definitions import definitions
from numapin_lab.controlplane.api import AnswerError
from numapin_lab.controlplane.installation import install
from numapin_lab.controlplane.servers import ControlPlane
from numapin_lab.errors import LabError
from numapin_lab.running_lab import eventually
from support.real.installing.own_plane import own_plane

CPU_POLICIES = "numapin.io_cpupolicies.yaml"
OLD = f"/apis/{names.GROUP}/{names.ALPHA}/cpupolicies"
NEW = f"/apis/{names.API_VERSION}/cpupolicies"
FORCED = ("--server-side", "--force-conflicts")
WHAT = {"isolation": "Partition"}
LATER = {"isolation": ["Partition", "IsolatedPartition"]}


def of_01() -> dict[str, Any]:
    """The CRD of policies with the values that 0.1 accepted, as its one version."""
    definition = deepcopy(definitions()[CPU_POLICIES])
    (version,) = (one for one in definition["spec"]["versions"] if one["name"] == names.ALPHA)
    fields = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    for name, values in LATER.items():
        fields[name]["enum"] += values
    definition["spec"]["versions"] = [version]
    return definition


def policy(name: str, spec: dict[str, Any], version: str = names.ALPHA) -> str:
    """A policy as a file."""
    kind = {"apiVersion": f"{names.GROUP}/{version}", "kind": "CpuPolicy"}
    return yaml.safe_dump({**kind, "metadata": {"name": name}, "spec": spec})


@pytest.fixture(scope="module")
def plane(
    control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    """With a policy of 0.1 that has such values, and then the CRDs of this version."""
    folder = tmp_path_factory.mktemp("ratcheting")
    with own_plane(folder, control_plane.programs) as made:
        made.kubectl("apply", "--server-side", "-f", "-", text=yaml.safe_dump(of_01()))
        eventually(lambda: serves(made, OLD), True)
        made.kubectl("apply", "--server-side", "-f", "-", text=policy("old", WHAT))
        install(made)
        yield made


def serves(plane: ControlPlane, path: str) -> bool:
    try:
        plane.api.get(path)
    except AnswerError:
        return False
    return True


@pytest.mark.parametrize("path", [OLD, NEW], ids=["v1alpha1", "v1beta1"])
def test_an_object_that_has_one_is_edited_and_reported(plane: ControlPlane, path: str) -> None:
    body = plane.api.get(f"{path}/old")
    priority = body["spec"]["priority"] + 1
    plane.api.request("PUT", f"{path}/old", body | {"spec": body["spec"] | {"priority": priority}})
    body = plane.api.get(f"{path}/old") | {"status": {"nodesSelected": priority}}
    plane.api.request("PUT", f"{path}/old/status", body)
    found = plane.api.get(f"{path}/old")
    assert (found["spec"]["priority"], found["status"]["nodesSelected"]) == (priority, priority)
    assert {key: found["spec"][key] for key in WHAT} == WHAT
    plane.kubectl("apply", *FORCED, "-f", "-", text=policy("old", WHAT))


@pytest.mark.parametrize("version", [names.ALPHA, names.VERSION])
def test_a_new_object_is_refused_with_what_to_write(plane: ControlPlane, version: str) -> None:
    with pytest.raises(LabError) as refused:
        plane.kubectl("create", "-f", "-", text=policy("new", WHAT, version))
    said = str(refused.value)
    assert 'spec.isolation: Unsupported value: "Partition": supported values: "Cpuset"' in said


def test_no_edit_writes_another_one(plane: ControlPlane) -> None:
    other = policy("old", WHAT | {"isolation": "IsolatedPartition"}, names.VERSION)
    with pytest.raises(LabError, match='supported values: "Cpuset"'):
        plane.kubectl("apply", *FORCED, "-f", "-", text=other)
    plane.kubectl("apply", *FORCED, "-f", "-", text=policy("old", {}, names.VERSION))
    assert plane.api.get(f"{NEW}/old")["spec"]["isolation"] == "Cpuset"
    with pytest.raises(LabError, match='supported values: "Cpuset"'):
        plane.kubectl("apply", *FORCED, "-f", "-", text=policy("old", WHAT))
