"""NodeResourceTopologies of a real API server, which has their kind once a scheduler brings it."""

import asyncio
from pathlib import Path

from numapin_client.client import ApiClient
from numapin_client.errors import NotFoundError
from numapin_client.resources import NODE_RESOURCE_TOPOLOGIES, Json, Key
from numapin_lab.components.catalog import SCHEDULER_MODULE
from numapin_lab.controlplane.servers import ControlPlane

CRD = SCHEDULER_MODULE / "crd.yaml"
NAME = "noderesourcetopologies.topology.node.k8s.io"


async def install_kind(plane: ControlPlane, crd: Path = CRD) -> None:
    """Install the CustomResourceDefinition as its users do."""
    await asyncio.to_thread(plane.kubectl, "apply", "--server-side", "-f", str(crd))
    # The options come last, or the words look like the command line of a program "wait".
    established = ("crd", NAME, "--for=condition=Established", "--timeout=60s")
    await asyncio.to_thread(plane.kubectl, "wait", *established)


async def remove_kind(plane: ControlPlane) -> None:
    """Remove it, and all objects with it."""
    await asyncio.to_thread(plane.kubectl, "delete", "crd", NAME, "--ignore-not-found")


async def published(admin: ApiClient, node: str) -> Json:
    """The object of a node; empty if there is none."""
    try:
        return await admin.get(NODE_RESOURCE_TOPOLOGIES, Key(node))
    except NotFoundError:
        return {}
