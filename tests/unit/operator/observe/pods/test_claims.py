"""Which claims a pod's containers use, and which of them are for CPUs."""

from typing import Any

import pytest

from numapin_api.hardware.places import ClaimedDevice
from numapin_operator.observe.pods.claims import MOST_DEVICES, ClaimView, with_claims
from numapin_operator.observe.pods.parser import MAX_CLAIMS, parse_pod, parse_stored_pod
from numapin_operator.observe.resource_slices import DeviceId
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
    view = with_claims(parse_pod(pod), {"c": CPUS, "g": GPU})
    assert [one.cpu_claims for one in view.containers] == [("uid-cpus",), ()]
    assert [exclusive_cpus(view, one) for one in view.containers] == [0, 2]
    assert with_claims(parse_pod(pod), {"c": CPUS}).claims_unknown
    plain = parse_pod(body())
    assert with_claims(plain, {}) is plain


def allocated(*results: dict[str, Any]) -> ClaimView:
    whole = ({"request": "r", "driver": "gpu.x", "pool": "n"} | one for one in results)
    status = {"allocation": {"devices": {"results": list(whole)}}}
    view = ClaimView.decode({"metadata": {"name": "c", "uid": "u"}, "status": status})
    assert view is not None
    return view


def test_the_devices_of_other_drivers_are_those_of_the_containers_that_refer_to_them() -> None:
    view = allocated(
        {"device": "g0"},
        {"device": "g1", "request": "s/big"},
        {"device": "g2", "adminAccess": True},
        {"device": "nic", "driver": "dra.net"},
        {"device": "cpu", "driver": "dra.cpu"},
        {"device": 1},
    )
    pod = body({"name": "g"}, {"name": "g", "request": "r"}, resourceClaims=named(("g", "c")))
    other = pod["spec"]["containers"][0] | {"name": "other"}
    other["resources"] = other["resources"] | {
        "claims": [{"name": "g", "request": "s"}],
        "limits": other["resources"]["limits"] | {"x/y": "1"},
    }
    pod["spec"]["containers"].append(other)
    found = with_claims(parse_pod(pod), {"c": view}, {DeviceId("gpu.x", "n", "g0"): ("numa/1",)})
    main, second = found.containers
    assert main.devices == (("dra.net", 1), ("gpu.x", 2)), "not twice, although it names it twice"
    assert main.claimed == (
        ClaimedDevice("gpu.x", "n/g0", ("numa/1",)),
        ClaimedDevice("gpu.x", "n/g1", None),
        ClaimedDevice("dra.net", "n/nic", None),
    )
    assert second.devices == (("gpu.x", 1), ("x/y", 1))


def test_more_devices_than_a_claim_can_have_are_left_out() -> None:
    view = allocated(*({"device": f"g{number}"} for number in range(MOST_DEVICES + 5)))
    assert len(view.devices) == MOST_DEVICES


def test_a_pod_with_claims_may_start_once_it_has_a_sandbox() -> None:
    pod = body({"name": "g"}, resourceClaims=named(("g", "c")))
    assert not parse_stored_pod(pod).sandboxed
    ready = {"type": "PodReadyToStartContainers", "status": "True"}
    assert parse_stored_pod(pod | {"status": {"conditions": [ready]}}).sandboxed
