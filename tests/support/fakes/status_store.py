"""The API server as the enforcer's status publisher sees it."""

import asyncio
from typing import Any

from numapin_client.errors import ClientError
from numapin_client.resources import Json, Key, Resource


class StatusStore:
    """One object, by default a NodeAssignment, whose status takes merge patches.

    It refuses with what stands first in `refusals`, drops the fields `prunes` as an older CRD does,
    fills in the `defaults` of a CRD, and answers while `may_answer` is set.
    """

    def __init__(self, plural: str = "nodeassignments", uid: str = "u1") -> None:
        self.plural, self.uid = plural, uid
        self.body: Json = {"metadata": {"name": "n", "uid": uid, "resourceVersion": "5"}}
        self.patches: list[dict[str, Any]] = []
        self.refusals: list[ClientError] = []
        self.prunes: set[str] = set()
        self.defaults: dict[str, Any] = {}
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def merge_patch(
        self,
        resource: Resource,
        key: Key,
        patch: Json,
        *,
        subresource: str = "",
        field_manager: str = "",
    ) -> Json:
        await self.may_answer.wait()
        assert (resource.plural, key.name, subresource) == (self.plural, "n", "status")
        assert patch["metadata"] == {"uid": self.uid}
        if self.refusals:
            raise self.refusals.pop(0)
        self.patches.append(patch["status"])
        version = str(int(self.body["metadata"]["resourceVersion"]) + 1)
        metadata = self.body["metadata"] | {"resourceVersion": version}
        status = merged(self.body.get("status", {}), patch["status"])
        kept = {key: value for key, value in status.items() if key not in self.prunes}
        status = {**self.defaults, **kept}
        self.body = {"metadata": metadata, "status": status}
        return self.body

    def edit(self, **fields: Any) -> Json:
        """Change fields of the status as another writer does; None removes one."""
        version = str(int(self.body["metadata"]["resourceVersion"]) + 1)
        metadata = self.body["metadata"] | {"resourceVersion": version}
        self.body = {"metadata": metadata, "status": merged(self.body.get("status", {}), fields)}
        return self.body


class OwnStores:
    """The API server with the objects of a node, each of which a test may leave out."""

    def __init__(self) -> None:
        self.assignment = StatusStore()
        self.report = StatusStore("nodereports", "r1")
        self.topology = StatusStore("nodetopologies", "t1")

    async def merge_patch(
        self,
        resource: Resource,
        key: Key,
        patch: Json,
        *,
        subresource: str = "",
        field_manager: str = "",
    ) -> Json:
        stores = (self.assignment, self.report, self.topology)
        store = next(one for one in stores if one.plural == resource.plural)
        return await store.merge_patch(resource, key, patch, subresource=subresource)


def merged(old: Any, patch: Any) -> Any:
    """RFC 7386, as its appendix writes it."""
    if not isinstance(patch, dict):
        return patch
    result = dict(old) if isinstance(old, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result
