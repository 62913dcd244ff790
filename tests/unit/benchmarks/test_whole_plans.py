"""The benchmark of whole plans measures plans that place a pod."""

import json

import pytest

from numapin_api.hardware.machine_file import parse_machine
from numapin_benchmarks.placement import whole_plans
from numapin_benchmarks.placement.workload import Json


@pytest.mark.parametrize("policy", [whole_plans.CPUS, whole_plans.MEMORY])
def test_plans_and_decisions_place_the_same(policy: Json) -> None:
    topology = parse_machine(json.dumps(whole_plans.SHAPE.document()), "")
    pods = whole_plans._pods(4)
    made = []
    for step in (whole_plans._planning(topology, policy), whole_plans._deciding(topology, policy)):
        spec = step(step(None, pods[:3]), pods)
        made.append([(one.pod, str(one.cpus)) for one in spec.containers])
    assert made[0] == made[1]
    assert [name for name, _ in made[0]] == ["p0000", "p0001", "p0002", "p0003"]
