"""Which writes the operator's role does not allow, for /readyz."""

import re
from typing import Final, NamedTuple

from numapin_client.errors import (
    AlreadyExistsError,
    ClientError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
)
from numapin_client.transport.connection import Request
from numapin_daemon.clock import Clock

FORGET_SECONDS: Final = 600.0
"""A refusal counts for so long if no request of its kind is sent again. An assignment that could
not be written is tried again sooner."""

_PATH: Final = re.compile(
    r"/(api|apis/[^/]+)/[^/]+(/namespaces/[^/]+)?/(?P<plural>[^/]+)(/[^/]+(?P<subresource>/.+)?)?"
)
"""Source: Kubernetes, "API concepts", "Resource URIs"."""

_VERBS: Final = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


_OPTIONAL: Final = frozenset(
    {
        "create pods/eviction",
        "create noderesourcetopologies",
        "patch noderesourcetopologies",
        "delete noderesourcetopologies",
    }
)
"""Rights of components that need not be installed: a policy that asks for one without it must not
make the operator unready. The pod's Event, or the log, says what to apply."""

_AFTER_THE_ROLE: Final = (AlreadyExistsError, ConflictError, InvalidError, NotFoundError)
"""Answers of a server that has found the right. Source: Kubernetes, "Controlling access"."""


class _Refused(NamedTuple):
    at: float
    why: str


class MissingRights:
    """The rights that the API server denied, until it allows a request that needs them.

    `describe` may be called in any thread.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._refused: dict[str, _Refused] = {}

    def note(self, request: Request, refused: ClientError | None) -> None:
        """Take in the answer to a write.

        Other refusals than RBAC's say nothing of the role: a namespace that is being deleted and a
        quota answer 403 as well. What is asked of the object comes after the role.
        """
        right = _right(request)
        if right in _OPTIONAL:
            return
        if refused is None or isinstance(refused, _AFTER_THE_ROLE):
            self._refused.pop(right, None)
        elif isinstance(refused, ForbiddenError) and refused.lacks_right:
            self._refused[right] = _Refused(self._clock.monotonic(), str(refused))

    def describe(self) -> dict[str, str]:
        """What to say of each missing right."""
        oldest = self._clock.monotonic() - FORGET_SECONDS
        return {
            f"right to {right}": one.why
            for right, one in tuple(self._refused.items())
            if one.at > oldest
        }


def _right(request: Request) -> str:
    """The verb and the resource, such as `update cpupolicies/status`."""
    path = _PATH.fullmatch(request.path)
    resource = f"{path['plural']}{path['subresource'] or ''}" if path else request.path
    return f"{_VERBS.get(request.method, request.method)} {resource}"
