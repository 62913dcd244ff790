"""Which ResourceClaims a pod's containers use: which are for CPUs, and which devices others give.

Does no I/O.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from sys import intern
from typing import Any, Final

from numapin_api.hardware.places import ClaimedDevice
from numapin_operator.observe.node_status import json_objects
from numapin_operator.observe.resource_slices import NO_PLACES, DeviceId, Places
from numapin_operator.placement import ClaimRef, ContainerView, PodView

DRIVER: Final = "dra.cpu"
"""The DRA driver that gives CPUs away. Source: kubernetes-sigs/dra-driver-cpu, cmd/dracpu."""

MOST_DEVICES: Final = 32
"""Of a claim. Source: Kubernetes v1.36, api/resource/v1, `AllocationResultsMaxSize`."""

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ClaimView:
    """One ResourceClaim that is allocated.

    Attributes:
        uid: its UID.
        cpu_requests: which of its requests the driver of CPUs serves.
        devices: the devices of other drivers, each with the request that it is for.
    """

    uid: str
    cpu_requests: frozenset[str]
    devices: tuple[tuple[str, DeviceId], ...] = ()

    @classmethod
    def decode(cls, body: Json) -> "ClaimView | None":
        """Decode a ResourceClaim; None if nothing is allocated for it.

        Who has a device for administration only watches it.
        Source: Kubernetes v1.36, api/resource/v1, `DeviceRequestAllocationResult`.
        """
        allocation = _object(_object(body.get("status")).get("allocation"))
        if not allocation:
            return None
        results = json_objects(_object(allocation.get("devices")).get("results"))
        served = (str(one.get("request")) for one in results if one.get("driver") == DRIVER)
        others = (one for one in results if one.get("driver") != DRIVER)
        return cls(
            str(_object(body.get("metadata")).get("uid") or ""),
            frozenset(served),
            tuple(
                (intern(str(one.get("request"))), device)
                for one in others
                if one.get("adminAccess") is not True and (device := DeviceId.decode(one))
            )[:MOST_DEVICES],
        )

    def serves(self, ref: ClaimRef) -> bool:
        """Whether a container that refers so to this claim gets CPUs from the driver."""
        return any(_means(ref, one) for one in self.cpu_requests)

    def devices_for(self, ref: ClaimRef) -> Iterator[DeviceId]:
        """The devices of a container that refers so to this claim."""
        return (device for request, device in self.devices if _means(ref, request))


def _means(ref: ClaimRef, request: str) -> bool:
    """A request with alternatives is allocated as `request/alternative`."""
    return ref.request in ("", request, request.partition("/")[0])


def claims_of_containers(spec: Json, status: Json) -> Mapping[str, tuple[ClaimRef, ...]]:
    """The claims of each container that has any.

    A claim that is made from a template, or for an extended resource, is named in the pod's status
    before the pod is bound.
    Source: Kubernetes v1.36, api/core/v1, `PodResourceClaimStatus`, `ResourceClaim` of a container
    and `PodExtendedResourceClaimStatus`.
    """
    listed = (*json_objects(spec.get("initContainers")), *json_objects(spec.get("containers")))
    found = {str(one.get("name")): list[ClaimRef]() for one in listed}
    if names := dict(_names(spec, status)):
        for one in listed:
            for used in json_objects(_object(one.get("resources")).get("claims")):
                if claim := names.get(str(used.get("name"))):
                    found[str(one.get("name"))].append(_ref(claim, used.get("request")))
    extended = _object(status.get("extendedResourceClaimStatus"))
    claim = extended.get("resourceClaimName")
    if isinstance(claim, str) and claim:
        for mapping in json_objects(extended.get("requestMappings")):
            name = str(mapping.get("containerName"))
            found.get(name, []).append(_ref(claim, mapping.get("requestName")))
    return {name: tuple(refs) for name, refs in found.items() if refs}


def with_claims(
    pod: PodView, claims: Mapping[str, ClaimView], places: Places = NO_PLACES
) -> PodView:
    """The pod with the claims for CPUs, and the claimed devices, of each container.

    Args:
        pod: a pod whose containers may have claims.
        claims: those that are known, by name. A pod with another one is not placed yet.
        places: what drivers say of devices.
    """
    refs = {ref for container in pod.containers for ref in container.claims}
    if not refs:
        return pod
    if any(ref.claim not in claims for ref in refs):
        return replace(pod, claims_unknown=True)
    return replace(pod, containers=tuple(_claiming(one, claims, places) for one in pod.containers))


def _claiming(
    container: ContainerView, claims: Mapping[str, ClaimView], places: Places
) -> ContainerView:
    refs = [(ref, claims[ref.claim]) for ref in container.claims]
    uids = dict.fromkeys(claim.uid for ref, claim in refs if claim.serves(ref))
    ids = dict.fromkeys(device for ref, claim in refs for device in claim.devices_for(ref))
    counts = Counter(one.driver for one in ids)
    return replace(
        container,
        cpu_claims=tuple(uids),
        devices=tuple(sorted((*container.devices, *counts.items()))),
        claimed=tuple(
            ClaimedDevice(one.driver, f"{one.pool}/{one.device}", places.get(one)) for one in ids
        ),
    )


def _names(spec: Json, status: Json) -> Iterator[tuple[str, str]]:
    """The name of each claim, by its name in the pod."""
    made = {str(one.get("name")): one for one in json_objects(status.get("resourceClaimStatuses"))}
    for one in json_objects(spec.get("resourceClaims")):
        name = one.get("resourceClaimName")
        if name is None:
            name = made.get(str(one.get("name")), {}).get("resourceClaimName")
        if isinstance(name, str) and name:
            yield str(one.get("name")), name


def _ref(claim: object, request: object) -> ClaimRef:
    return ClaimRef(intern(str(claim)), intern(str(request or "")))


def _object(value: object) -> Json:
    return value if isinstance(value, Mapping) else {}
