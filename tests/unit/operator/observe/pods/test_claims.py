"""Which claims a pod's containers use, and which of them are for CPUs."""

from typing import Any

import pytest

from numapin_operator.observe.pods.claims import ClaimView, with_cpu_claims
from numapin_operator.observe.pods.parser import MAX_CLAIMS, parse_pod, parse_stored_pod
from numapin_operator.placement import ClaimRef, exclusive_cpus
from support.values.operator import pod_body

CPUS, GPU = ClaimView("uid-cpus", frozenset({"cpus"})), ClaimView("uid-gpu", frozenset())


def body(*used: dict[str, str], **spec: Any) -> dict[str, Any]:
    """A pod whose container uses claims of the pod by their names in it."""
    made = pod_body("a")
    made["spec"]["containers"][0]["resources"]["claims"] = list(used)
    made["spec"] |= spec
    return made


def named(*pairs: tuple[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "resourceClaimName": claim} for name, claim in pairs]


def claim(*results: tuple[str, str], allocated: bool = True) -> dict[str, Any]:
    """A ResourceClaim with the driver of each request."""
    listed = [{"request": name, "driver": driver} for name, driver in results]
    status = {"allocation": {"devices": {"results": listed}}} if allocated else {}
    return {"metadata": {"name": "c", "uid": "u"}, "status": status}


def test_claims_of_the_pod_are_found_by_name_and_from_templates() -> None:
    pod = body({"name": "own", "request": "cpus"}, {"name": "made"}, {"name": "not-needed"})
    pod["spec"]["resourceClaims"] = [
        *named(("own", "claim-1")),
        {"name": "made", "resourceClaimTemplateName": "t"},
        {"name": "not-needed", "resourceClaimTemplateName": "t"},
    ]
    pod["status"] = {"resourceClaimStatuses": [*named(("made", "a-made-x7")), {"name": "other"}]}
    [container] = parse_pod(pod).containers
    assert container.claims == (ClaimRef("claim-1", "cpus"), ClaimRef("a-made-x7"))


def test_a_claim_for_an_extended_resource_is_in_the_status_alone() -> None:
    pod, mapping = body(), {"containerName": "main", "resourceName": "x/y", "requestName": "r0"}
    others = [mapping | {"containerName": "gone"}]
    status = {"resourceClaimName": "extended", "requestMappings": [mapping, *others]}
    pod["status"] = {"extendedResourceClaimStatus": status}
    [container] = parse_pod(pod).containers
    assert container.claims == (ClaimRef("extended", "r0"),)


@pytest.mark.parametrize("nonsense", [None, 1, "x", [], [1], {"name": []}, [{"name": ["x"]}]])
def test_nonsense_is_no_claim(nonsense: Any) -> None:
    pod = body()
    pod["spec"]["resourceClaims"] = nonsense
    pod["spec"]["containers"][0]["resources"]["claims"] = nonsense
    pod["status"] = {"resourceClaimStatuses": nonsense, "extendedResourceClaimStatus": nonsense}
    assert parse_pod(pod).containers[0].claims == ()


def test_a_pod_with_very_many_claims_is_told_so() -> None:
    pod = body(*({"name": "own"} for _ in range(MAX_CLAIMS + 1)))
    pod["spec"]["resourceClaims"] = named(("own", "c"))
    problem = parse_stored_pod(pod).problem
    assert problem == "spec.resourceClaims: the containers use 65 claims; use at most 64"


@pytest.mark.parametrize(
    ("results", "request_", "serves"),
    [
        pytest.param([("cpus", "dra.cpu")], "", True, id="whole-claim"),
        pytest.param([("cpus", "dra.cpu")], "cpus", True, id="its-request"),
        pytest.param([("cpus/big", "dra.cpu")], "cpus", True, id="an-alternative"),
        pytest.param([("cpus", "dra.cpu"), ("gpu", "gpu.x")], "gpu", False, id="another-request"),
        pytest.param([("gpu", "gpu.x")], "", False, id="another-driver"),
    ],
)
def test_which_containers_the_driver_serves(
    results: list[tuple[str, str]], request_: str, serves: bool
) -> None:
    view = ClaimView.decode(claim(*results))
    assert view is not None
    assert view.serves(ClaimRef("c", request_)) is serves


def test_a_claim_without_an_allocation_says_nothing() -> None:
    assert ClaimView.decode(claim(allocated=False)) is None


def test_only_containers_that_the_driver_serves_get_no_cpus_from_us() -> None:
    pod = body({"name": "cpu"}, {"name": "gpu"}, resourceClaims=named(("cpu", "c"), ("gpu", "g")))
    other = pod["spec"]["containers"][0] | {"name": "other"}
    other["resources"] = other["resources"] | {"claims": [{"name": "gpu"}]}
    pod["spec"]["containers"].append(other)
    view = with_cpu_claims(parse_pod(pod), {"c": CPUS, "g": GPU})
    assert [one.cpu_claims for one in view.containers] == [("uid-cpus",), ()]
    assert [exclusive_cpus(view, one) for one in view.containers] == [0, 2]
    assert with_cpu_claims(parse_pod(pod), {"c": CPUS}).claims_unknown
    plain = parse_pod(body())
    assert with_cpu_claims(plain, {}) is plain
