"""The operator's rights, which a test may cut."""

import asyncio
import json

from numapin_lab.controlplane.servers import ControlPlane

CLUSTER_ROLE = ("clusterrole", "numapin-operator")


class Role:
    """The operator's ClusterRole."""

    def __init__(self, plane: ControlPlane) -> None:
        self._kubectl = plane.kubectl
        self._whole = json.loads(self._kubectl("get", *CLUSTER_ROLE, "--output=json"))["rules"]

    async def cut(self, *resources: str) -> None:
        """Grant all that the manifests grant but the rules for these resources."""
        kept = [rule for rule in self._whole if not {*rule["resources"]} & {*resources}]
        patch = json.dumps([{"op": "replace", "path": "/rules", "value": kept}])
        await asyncio.to_thread(self._kubectl, "patch", *CLUSTER_ROLE, "--type=json", "-p", patch)
