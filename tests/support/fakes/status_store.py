"""The API server as the enforcer's status publisher sees it."""

import asyncio
from typing import Any

from numapin_client.errors import ClientError
from numapin_client.resources import Json, Key, Resource


class StatusStore:
    """A NodeAssignment whose status takes merge patches.

    It refuses with what stands first in `refusals`, drops the fields `prunes` as an older CRD does,
    and answers while `may_answer` is set.
    """

    def __init__(self) -> None:
        self.body: Json = {"metadata": {"name": "n", "uid": "u1", "resourceVersion": "5"}}
        self.patches: list[dict[str, Any]] = []
        self.refusals: list[ClientError] = []
        self.prunes: set[str] = set()
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
        assert (resource.plural, key.name, subresource) == ("nodeassignments", "n", "status")
        assert patch["metadata"] == {"uid": "u1"}
        if self.refusals:
            raise self.refusals.pop(0)
        self.patches.append(patch["status"])
        version = str(int(self.body["metadata"]["resourceVersion"]) + 1)
        metadata = self.body["metadata"] | {"resourceVersion": version}
        status = merged(self.body.get("status", {}), patch["status"])
        status = {key: value for key, value in status.items() if key not in self.prunes}
        self.body = {"metadata": metadata, "status": status}
        return self.body


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
