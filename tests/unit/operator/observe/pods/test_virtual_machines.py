"""Pods of a RuntimeClass that runs them in a virtual machine get no CPUs of their own."""

from typing import Any

import pytest

from numapin_operator.nodes.decide import decide
from numapin_operator.observe.pods.parser import parse_pod, parse_stored_pod
from support.values.operator import EMPTY, REPORTED, assignment_view, picture, pod_body

OVERHEAD = {"memory": "120Mi", "cpu": "250m"}


def body(cpu: str = "2", **spec: Any) -> dict[str, Any]:
    made = pod_body("a", cpu)
    made["spec"] |= spec
    return made


@pytest.mark.parametrize(
    ("fields", "cpu", "recognised"),
    [
        pytest.param({"runtimeClassName": "sandboxed", "overhead": OVERHEAD}, "2", True, id="vm"),
        pytest.param({"runtimeClassName": "kata-qemu"}, "2", True, id="kata-without-overhead"),
        pytest.param({"runtimeClassName": "nvidia"}, "2", False, id="no-vm"),
        pytest.param({"runtimeClassName": "kata"}, "1500m", False, id="shares-anyway"),
        pytest.param({"overhead": OVERHEAD}, "2", False, id="no-runtime-class"),
        pytest.param({"runtimeClassName": ["kata"]}, "2", False, id="not-a-name"),
    ],
)
def test_which_pods_are_recognised(fields: dict[str, Any], cpu: str, recognised: bool) -> None:
    view = parse_stored_pod(body(cpu, **fields))
    assert ("virtual machine" in view.problem) == recognised
    assert view.containers == parse_pod(body(cpu)).containers


def test_the_refusal_says_why_and_the_cpus_stay_shared() -> None:
    view = parse_stored_pod(body(runtimeClassName="kata", overhead=OVERHEAD))
    spec = decide(picture(assignment_view(EMPTY, REPORTED), view)).spec
    assert spec is not None
    assert spec.pools is not None
    assert (spec.containers, str(spec.pools.shared)) == ((), "0-7")
    (refused,) = spec.refused
    assert refused.reason == "InvalidPod"
    assert (refused.message or "").startswith("spec.runtimeClassName: 'kata' runs the pod in a")
