"""This operator with CRDs of another release: they lack fields, and have one that is new to it."""

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from numapin_api import names
from numapin_client.resources import CPU_POLICIES, Key
from numapin_lab.controlplane.installation import install
from numapin_lab.controlplane.servers import ControlPlane
from support.real.audit import Audit, Right, audit_flags
from support.real.installing.own_plane import own_plane
from support.real.operators.operator_process import OperatorProcess, until
from support.real.operators.operator_scenes import plan, says
from support.real.operators.operator_world import RealWorld

CHANGES = {"create", "update", "patch", "delete"}
QUIET_SECONDS = 5.0
LATER = {
    "nodeassignments.numapin.io": (
        *("spec.releaseAt", "spec.isolation", "spec.cpuQuota", "spec.refusedOmitted"),
        *("spec.policy.since", "spec.containers.outdated", "spec.containers.memory"),
        *("status.freeHugepages", "status.kubeletContainers", "status.bootID", "status.outdated"),
        *("status.lastPassTime", "status.driftCauses", "status.refused"),
    ),
    "cpupolicies.numapin.io": (
        *("spec.rollout", "spec.releaseDelay", "spec.isolatedCPUs", "spec.placement"),
        *("status.currentRevision", "status.outdated", "status.nodesNotServed", "status.conflicts"),
        *("status.refused", "status.stalled"),
    ),
}


def without(schema: dict[str, Any], path: str) -> None:
    """Take one field out of a schema; what it says of other fields stays."""
    name, _, rest = path.partition(".")
    schema = schema.get("items", schema)
    if rest:
        without(schema["properties"][name], rest)
    else:
        del schema["properties"][name]


@pytest.fixture(scope="module")
def installed_plane(
    control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    """A control plane of its own with the CRDs of another release."""
    folder = tmp_path_factory.mktemp("other")
    with own_plane(folder, control_plane.programs, audit_flags(folder)) as plane:
        install(plane)
        change(plane)
        yield plane


def change(plane: ControlPlane) -> None:
    """Take fields out of the CRDs, and add a value, and a field that the API server fills in."""
    for crd, paths in LATER.items():
        body = plane.kubectl.get("crd", crd)
        for version in body["spec"]["versions"]:
            for path in paths:
                without(version["schema"]["openAPIV3Schema"], path)
            spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
            spec["properties"]["future"] = {"type": "string", "default": "bright"}
            spec["properties"]["mode"]["enum"].append("Elastic")
        plane.kubectl("replace", "-f", "-", text=json.dumps(body))


async def test_with_other_crds_pods_are_placed_and_the_operator_comes_to_rest(
    world: RealWorld, operator: OperatorProcess
) -> None:
    audit = Audit(world.plane, names.OPERATOR_SERVICE_ACCOUNT)
    policy = world.name("policy")
    node = await plan(world)
    first, second = await world.add_pod(node, "a"), await world.add_pod(node, "b", "6")
    await until(lambda: world.held(node), operator.log)
    await until(lambda: world.event_notes(second), operator.log)
    await world.enforce(node, first.uid, second.uid)

    assert "releaseDelay" not in (await world.admin.get(CPU_POLICIES, Key(policy)))["spec"]

    async def rests() -> bool:
        """Writes that change nothing leave the version as it is: they are counted."""
        before = writes(audit)
        await asyncio.sleep(QUIET_SECONDS)
        return writes(audit) == before

    await until(rests, operator.log)
    assert await world.held(node) == {"a": "2-3"}
    (ready,) = [
        one for one in (await world.policy_status(policy))["conditions"] if one["type"] == "Ready"
    ]
    assert ready["status"] == "True"
    assert ready["message"].endswith("; this operator does not know spec.future: no effect")


async def test_a_value_of_another_release_stalls_and_leaves_what_is_in_force(
    world: RealWorld, operator: OperatorProcess
) -> None:
    node = await plan(world)
    await world.add_pod(node, "a")
    await until(lambda: world.held(node), operator.log)
    before = await world.spec(node)
    await world.put_policy({"mode": "Elastic", "reserved": {"count": 2}}, "policy")

    await until(lambda: says(world, "Stalled", "True", "InvalidPolicy"), operator.log)
    conditions = (await world.policy_status(world.name("policy")))["conditions"]
    wanted = "spec.mode: input should be 'Static', 'None', 'Dynamic' or 'Audit', not 'Elastic'"
    assert wanted in {one["message"] for one in conditions}
    assert await world.spec(node) == before


def writes(audit: Audit) -> Counter[Right]:
    """Requests that were to change one of our objects."""
    counted = audit.counts()
    ours = (right for right in counted if right[0] == "numapin.io" and right[2] in CHANGES)
    return Counter({right: counted[right] for right in ours})
