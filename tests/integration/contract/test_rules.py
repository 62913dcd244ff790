"""Every rule of the two kinds, with a spec it accepts and one it refuses, by the API server."""

from typing import Any

import pytest
import yaml

from numapin_lab.controlplane.kubectl import Kubectl
from numapin_lab.errors import LabError
from support.values.policy_specs import BAD_POLICIES, GOOD_POLICIES

POOLS = {"reserved": "0", "shared": "0-1"}
OWNER = {"podUID": "u1", "namespace": "default", "pod": "p", "container": "c"}

LATER_POOLS = {"reservedCPUs": "0", "sharedCPUs": "0-1"}
LINE = "team/engine-0 engine cpus=2-3 mems=0 memory=0:1Gi since=1 uid=u-1"
GOOD_ASSIGNMENTS: dict[str, dict[str, Any]] = {
    "nothing known yet": {},
    "given back": {"mode": "None"},
    "one container": {
        "policy": {"name": "a", "generation": 1},
        "pools": POOLS,
        "containers": [{**OWNER, "cpus": "2-3", "mems": "0", "exclusive": True}],
        "refused": [{**OWNER, "reason": "NotEnoughCPUs", "message": "wanted 4, 2 are free"}],
    },
    "one line": {"pools": LATER_POOLS, "assigned": [LINE]},
    "no reserved CPUs, and a time": {
        "pools": {"reservedCPUs": "", "sharedCPUs": "1"},
        "releaseTime": "2026-03-01T09:00:00Z",
    },
    "reserved CPUs still owned": {
        "pools": {"reserved": "", "shared": "1"},
        "containers": [{**OWNER, "cpus": "0", "exclusive": True}],
    },
    "memory alone": {
        "pools": POOLS,
        "containers": [
            {
                **OWNER,
                "mems": "1",
                "memory": [{"numaNodes": [1], "resource": "hugepages-2Mi", "bytes": 2097152}],
            }
        ],
    },
}

BAD_ASSIGNMENTS: dict[str, tuple[dict[str, Any], str]] = {
    "an empty shared pool": ({"pools": {"reserved": "0", "shared": ""}}, "at least 1 chars"),
    "no shared pool": ({"pools": {"reserved": "0"}}, "set reservedCPUs and sharedCPUs, both"),
    "pools of both forms": (
        {"pools": {"reserved": "0", "shared": "1", "sharedCPUs": "1"}},
        "set reservedCPUs and sharedCPUs, both",
    ),
    "lines without pools": ({"assigned": [LINE]}, "assigned containers need pools"),
    "lines with the pools of 0.1": (
        {"pools": POOLS, "assigned": [LINE]},
        "assigned containers need pools",
    ),
    "both forms": (
        {
            "pools": LATER_POOLS,
            "assigned": [LINE],
            "containers": [{**OWNER, "cpus": "2", "exclusive": True}],
        },
        "containers and assigned say the same",
    ),
    "no list": ({"pools": {"reserved": "0", "shared": "all"}}, "spec.pools.shared"),
    "containers without pools": (
        {"containers": [{**OWNER, "cpus": "1", "exclusive": True}]},
        "containers need pools",
    ),
    "exclusive without CPUs": (
        {"pools": POOLS, "containers": [{**OWNER, "exclusive": True}]},
        "an exclusive container needs cpus",
    ),
    "a pod UID that leaves its folder": (
        {"pools": POOLS, "containers": [{**OWNER, "podUID": "../u", "cpus": "2"}]},
        "spec.containers[0].podUID",
    ),
    "an unknown resource": (
        {
            "pools": POOLS,
            "containers": [
                {**OWNER, "memory": [{"numaNodes": [0], "resource": "swap", "bytes": 1}]}
            ],
        },
        "spec.containers[0].memory[0].resource",
    ),
}


def _ask(kubectl: Kubectl, kind: str, spec: dict[str, Any]) -> str:
    document = {
        "apiVersion": "numapin.io/v1beta1",
        "kind": kind,
        "metadata": {"name": "tried"},
        "spec": spec,
    }
    text = yaml.safe_dump(document)
    return kubectl("create", "--dry-run=server", "--validate=strict", "-f", "-", text=text)


@pytest.mark.parametrize("case", GOOD_POLICIES)
def test_a_policy_is_accepted(installed: Kubectl, case: str) -> None:
    assert "created" in _ask(installed, "CpuPolicy", GOOD_POLICIES[case])


@pytest.mark.parametrize("case", BAD_POLICIES)
def test_an_invalid_policy_is_refused_with_help(installed: Kubectl, case: str) -> None:
    spec, message = BAD_POLICIES[case]
    with pytest.raises(LabError) as refused:
        _ask(installed, "CpuPolicy", spec)
    assert message in str(refused.value)


@pytest.mark.parametrize("case", GOOD_ASSIGNMENTS)
def test_an_assignment_is_accepted(installed: Kubectl, case: str) -> None:
    assert "created" in _ask(installed, "NodeAssignment", GOOD_ASSIGNMENTS[case])


@pytest.mark.parametrize("case", BAD_ASSIGNMENTS)
def test_an_invalid_assignment_is_refused_with_help(installed: Kubectl, case: str) -> None:
    spec, message = BAD_ASSIGNMENTS[case]
    with pytest.raises(LabError) as refused:
        _ask(installed, "NodeAssignment", spec)
    assert message in str(refused.value)
