"""What a DRA driver of the lab publishes: its class, and the devices of one node."""

from collections.abc import Mapping
from typing import Any

VERSION = "resource.k8s.io/v1"

Json = dict[str, Any]


def device_class(driver: str) -> Json:
    """The class of all devices of a driver; it has the driver's name."""
    selector = {"cel": {"expression": f'device.driver == "{driver}"'}}
    return {
        "apiVersion": VERSION,
        "kind": "DeviceClass",
        "metadata": {"name": driver},
        "spec": {"selectors": [selector]},
    }


def resource_slice(
    driver: str, node: str, devices: Mapping[str, Mapping[str, Any]], generation: int = 1
) -> Json:
    """The slice of a node, with the attributes of each device by its name."""
    pool = {"name": node, "generation": generation, "resourceSliceCount": 1}
    listed = [{"name": name, "attributes": dict(has)} for name, has in devices.items()]
    return {
        "apiVersion": VERSION,
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node}-{driver}"},
        "spec": {"driver": driver, "nodeName": node, "pool": pool, "devices": listed},
    }


def claim(name: str, driver: str, expression: str = "true", count: int = 1) -> Json:
    """A claim for devices of a driver of which a CEL expression holds."""
    exactly = {
        "deviceClassName": driver,
        "count": count,
        "selectors": [{"cel": {"expression": expression}}],
    }
    return {
        "apiVersion": VERSION,
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"devices": {"requests": [{"name": "device", "exactly": exactly}]}},
    }


def with_claim(pod: Json, name: str, container: int = 0) -> Json:
    """The pod with a claim that one of its containers uses."""
    spec = pod["spec"]
    spec["resourceClaims"] = [{"name": "device", "resourceClaimName": name}]
    spec["containers"][container]["resources"]["claims"] = [{"name": "device"}]
    return pod
