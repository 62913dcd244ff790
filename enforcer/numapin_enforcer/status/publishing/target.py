"""The status of one object of this node: what the API server has of it, and patches of it."""

import logging
from collections.abc import Collection, Mapping
from typing import Any, Final, Protocol

from numapin_api.names import ENFORCER_FIELD_MANAGER
from numapin_client.errors import NotFoundError
from numapin_client.resources import Json, Key, Resource
from numapin_enforcer.status.publishing.merge_patch import merge_patch

LOG: Final = logging.getLogger(__name__)


class StatusApi(Protocol):
    """What is needed of the API server."""

    async def merge_patch(
        self,
        resource: Resource,
        key: Key,
        patch: Json,
        *,
        subresource: str = "",
        field_manager: str = "",
    ) -> Json:
        """Change some fields of an object."""
        ...


class Target:
    """One object whose status, or a part of it, is the enforcer's."""

    def __init__(
        self,
        api: StatusApi,
        resource: Resource,
        node_name: str,
        fields: Collection[str] | None = None,
    ) -> None:
        """Know nothing yet.

        Args:
            api: an open client.
            resource: the kind of the object.
            node_name: its name.
            fields: the fields of the status that are the enforcer's; all by default.
        """
        self._api, self._resource, self._key = api, resource, Key(node_name)
        self._fields = fields
        self._dropped: Mapping[str, Any] = {}
        """What the API server left out of the last patch."""
        self.body: Json | None = None
        """The object as the API server has it; None if it has none, or before its first answer."""

    @property
    def uid(self) -> str:
        """The UID of the object; empty if there is none."""
        return str(self.body["metadata"]["uid"]) if self.body is not None else ""

    @property
    def status(self) -> dict[str, Any]:
        """The enforcer's fields, as the API server has them."""
        return self._own(self.body) if self.body is not None else {}

    def observe(self, body: Json | None) -> bool:
        """What the API server has now, as a watch saw it; returns False for what is older."""
        if body is not None and self.body is not None and _version(body) < _version(self.body):
            return False
        self.body = body
        return True

    def patch_to(self, wanted: Mapping[str, Any]) -> dict[str, Any]:
        """The patch after which the status is `wanted`.

        It is empty if the status is so, or if the API server would drop all of the patch.
        """
        patch = merge_patch(_known(self.status, wanted), wanted)
        return {} if patch == self._dropped else patch

    async def write(
        self, patch: Mapping[str, Any], wanted: Mapping[str, Any], **besides: object
    ) -> bool:
        """Send a patch to `wanted`, with other fields besides; False if the object is gone.

        Raises:
            ClientError: the API server did not take it.
        """
        body = {"metadata": {"uid": self.uid}, "status": {**patch, **besides}}
        try:
            answer = await self._api.merge_patch(
                self._resource,
                self._key,
                body,
                subresource="status",
                field_manager=ENFORCER_FIELD_MANAGER,
            )
        except NotFoundError:
            return False  # the watch reports when there is one again
        left = merge_patch(_known(self._own(answer), wanted), wanted)
        self._note_dropped({key: one for key, one in left.items() if key in patch})
        if self.body is not None:
            self.observe(answer)
        return True

    def _note_dropped(self, left: Mapping[str, Any]) -> None:
        """Remember what the API server did not take of a patch.

        An API server whose CRD is older than the enforcer drops fields that it does not know. They
        must not be sent for ever.
        """
        if left and left != self._dropped:
            LOG.warning(
                "the API server stores only a part of the status; is its CRD older than this?",
                extra={"kind": self._resource.kind, "fields": sorted(left)},
            )
        self._dropped = left

    def _own(self, body: Mapping[str, Any]) -> dict[str, Any]:
        status = body.get("status") or {}
        if self._fields is None:
            return dict(status)
        return {key: value for key, value in status.items() if key in self._fields}


def _known(status: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    """A status without unwanted fields that are empty: the API server fills in defaults."""
    return {key: value for key, value in status.items() if value or key in wanted}


def _version(body: Mapping[str, Any]) -> int:
    """An object's resourceVersion as a number, by which newer is greater.

    Source: KEP-5504, "Comparable Resource Version".
    """
    text = str(body["metadata"].get("resourceVersion", ""))
    return int(text) if text.isascii() and text.isdigit() else 0
