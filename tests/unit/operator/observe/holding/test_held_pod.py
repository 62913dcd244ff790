"""A pod that waits for a node: what is read of it, and how it is opened."""

from typing import Any

import pytest

from numapin_api import names
from support.values.held_pods import GATE, decoded, held_body, held_view, patched
from support.values.operator import pod_body

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def pinned_terms(body: dict[str, Any]) -> list[Any]:
    found: list[Any] = body["spec"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    return found


def name_is(node: str) -> dict[str, Any]:
    return {"key": "metadata.name", "operator": "In", "values": [node]}


def test_other_pods_are_not_ours() -> None:
    assert decoded(pod_body("a", node="")) is None
    assert decoded(held_body("a", spec={"schedulingGates": [{"name": "other.io/gate"}]})) is None


def test_the_gate_goes_and_the_affinity_names_the_node() -> None:
    body = held_body("a", spec={"schedulingGates": [{"name": "other.io/gate"}, GATE]})
    held = decoded(body)
    assert held is not None
    assert (held.is_gated, held.other_gates, held.pinned) == (True, ("other.io/gate",), "")
    after = patched(body, held.opened_for("n1"))
    assert after["spec"]["schedulingGates"] == [{"name": "other.io/gate"}]
    assert pinned_terms(after) == [{"matchFields": [name_is("n1")]}]
    opened = decoded(after)
    assert opened is not None
    assert (opened.is_gated, opened.pinned) == (False, "n1")


def test_each_term_is_narrowed_and_none_that_allows_nothing_is_touched() -> None:
    terms = [
        {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]},
        {"matchFields": [name_is("n1")]},
        {},
    ]
    preferred = [{"weight": 1, "preference": {"matchFields": [name_is("n2")]}}]
    affinity = {REQUIRED: {"nodeSelectorTerms": terms}, PREFERRED: preferred}
    body = held_body("a", spec={"affinity": {"nodeAffinity": affinity, "podAffinity": {}}})
    held = decoded(body)
    assert held is not None
    after = patched(body, held.opened_for("n1"))
    assert pinned_terms(after) == [
        {**terms[0], "matchFields": [name_is("n1")]},
        {"matchFields": [name_is("n1"), name_is("n1")]},
        {},
    ]
    assert after["spec"]["affinity"]["nodeAffinity"][PREFERRED] == preferred


def test_a_pod_that_nothing_holds_keeps_its_affinity() -> None:
    body = held_body("a")
    held = decoded(body)
    assert held is not None
    after = patched(body, held.opened_for(None))
    assert "schedulingGates" not in after["spec"]
    assert "affinity" not in after["spec"]
    assert after["metadata"]["resourceVersion"] == "1", "only this version is opened"


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"volumes": [{"persistentVolumeClaim": {"claimName": "c"}}]}, "spec.volumes"),
        ({"volumes": [{"ephemeral": {}}]}, "spec.volumes"),
        ({"volumes": [{"emptyDir": {}}, {"configMap": {}}]}, ""),
        ({"affinity": {"podAntiAffinity": {REQUIRED: [{}]}}}, "spec.affinity.podAntiAffinity"),
        ({"affinity": {"podAffinity": {REQUIRED: [{}]}}}, "spec.affinity.podAffinity"),
        ({"affinity": {"podAffinity": {PREFERRED: [{}]}}}, ""),
        (
            {"topologySpreadConstraints": [{"whenUnsatisfiable": "DoNotSchedule"}]},
            "spec.topologySpreadConstraints",
        ),
        ({"topologySpreadConstraints": [{"whenUnsatisfiable": "ScheduleAnyway"}]}, ""),
        ({"resourceClaims": [{"name": "c"}]}, "spec.resourceClaims"),
    ],
    ids=str,
)
def test_what_the_scheduler_alone_judges_is_named(spec: dict[str, Any], field: str) -> None:
    assert held_view("a", spec=spec).unjudged == field


def test_what_a_container_asks_beside_cpus_and_memory_is_named() -> None:
    body = held_body("a")
    [container] = body["spec"]["containers"]
    container["resources"]["limits"]["hugepages-2Mi"] = "2Mi"
    plain = decoded(body)
    assert plain is not None
    assert plain.unjudged == ""
    container["ports"] = [{"hostPort": 80}]
    with_port = decoded(body)
    assert with_port is not None
    assert with_port.unjudged == "spec.containers[].ports[].hostPort"
    container["ports"] = []
    container["resources"]["limits"]["example.com/gpu"] = "1"
    with_gpu = decoded(body)
    assert with_gpu is not None
    assert with_gpu.unjudged == "spec.containers[].resources: example.com/gpu"


def test_what_it_was_told_is_compared_up_to_the_colon() -> None:
    body = held_body("a")
    body["metadata"]["annotations"] = {names.HELD_ANNOTATION: "NotEnoughCPUs on n1: wanted 4"}
    held = decoded(body)
    assert held is not None
    assert held.told == "NotEnoughCPUs on n1"


def test_hostile_fields_are_read() -> None:
    body = held_body("a")
    body["spec"] |= {"affinity": [], "volumes": {}, "tolerations": "all", "nodeSelector": 1}
    body["metadata"]["annotations"] = {names.HELD_ANNOTATION: 7}
    held = decoded(body)
    assert held is not None
    assert (held.unjudged, held.told, held.rules.labels) == ("", "", ())
