"""Errors of requests to the API server, as types that carry the data."""

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Final, NamedTuple

from numapin_api import names
from numapin_api.conditions.reasons import Reason

MAX_RETRY_AFTER_SECONDS: Final = 60.0
"""No server, and no proxy before it, can stop us for longer at a time."""

DISRUPTION_BUDGET: Final = "DisruptionBudget"
"""Cause of an eviction refused by a budget. Source: `policy/v1`, `DisruptionBudgetCause`."""

_NO_RIGHT: Final = re.compile(r' cannot [a-z]+ resource "')

_OUR_KINDS: Final = f"/apis/{names.API_VERSION}/"

NO_CRDS: Final = (
    f"{names.API_VERSION} is not served: "
    "if this lasts, apply the CRDs of this version first: kubectl apply -k crds"
)
"""An API server that has just started does not know them either, for some seconds."""

_APPLY_AGAIN: Final = "the role lacks this right: apply the manifests of this version again"


class ClientError(Exception):
    """A request to the API server failed."""

    retry_after_seconds: float | None = None
    """How long the server asked to wait, `MAX_RETRY_AFTER_SECONDS` at most; None if it did not."""


class LoginError(ClientError):
    """The login is missing or unusable; the text names the place and the remedy."""


class ConnectionFailedError(ClientError):
    """No valid answer: refused, cut, timed out, not trusted, or not a Kubernetes API."""

    def __init__(self, request: str, why: str, remedy: str = "") -> None:
        super().__init__(f"{request}: {why}" + (f"; {remedy}" if remedy else ""))
        self.request, self.why, self.remedy = request, why, remedy


class IdleTimeoutError(ConnectionFailedError):
    """The server sent nothing for too long."""


class MalformedAnswerError(ConnectionFailedError):
    """The answer is not that of a Kubernetes API server."""


class AnswerTooLargeError(ConnectionFailedError):
    """The answer is larger than what the caller reads; the rest was not read."""


class Cause(NamedTuple):
    """One of the causes of a refused request."""

    reason: str
    """Machine-readable, such as `FieldValueInvalid` or `FieldManagerConflict`."""
    field: str
    """Path of the field, such as `spec.options.fullPCPUsOnly`; empty if the cause is no field."""
    message: str


class ApiError(ClientError):
    """The API server refused the request.

    Source: apimachinery `metav1.Status`, "reason", "details.causes", "details.retryAfterSeconds".
    """

    def __init__(
        self,
        request: str,
        status: int,
        answer: Mapping[str, Any],
        retry_after_seconds: float | None = None,
    ) -> None:
        """Read a Status object.

        Args:
            request: method and URL, such as `GET https://host/api/v1/pods`.
            status: the HTTP status, or the `code` of a Status that came as a watch event.
            answer: the Status object; what it lacks is left empty.
            retry_after_seconds: the Retry-After header, if there was one.
        """
        details = answer.get("details") or {}
        self.request, self.status = request, status
        self.status_reason = str(answer.get("reason") or "")
        self.message = str(answer.get("message") or "no message")
        self.object_name = str(details.get("name") or "")
        self.retry_after_seconds = retry_after_seconds
        if retry_after_seconds is None and details.get("retryAfterSeconds"):
            self.retry_after_seconds = float(details["retryAfterSeconds"])
        if self.retry_after_seconds is not None:
            self.retry_after_seconds = min(self.retry_after_seconds, MAX_RETRY_AFTER_SECONDS)
        self.causes = tuple(
            Cause(each.get("reason", ""), each.get("field", ""), each.get("message", ""))
            for each in details.get("causes") or ()
        )
        why = f"{status} {self.status_reason}".rstrip()
        super().__init__(f"{request}: {why}: {self.message}")

    @property
    def is_overload(self) -> bool:
        """Whether the server cannot answer now, whatever it is asked.

        An eviction that a disruption budget refuses has status 429 as well, and is none.
        Source: Kubernetes, "API-initiated Eviction".
        """
        if any(cause.reason == DISRUPTION_BUDGET for cause in self.causes):
            return False
        return self.status in (429, 502, 503, 504)


class BadRequestError(ApiError):
    """400: the request is malformed."""


class UnauthorizedError(ApiError):
    """401: the server does not accept the credential, not even a renewed one."""


class ForbiddenError(ApiError):
    """403: RBAC, an admission policy or a quota forbids the request, or a namespace is ending."""

    reason: ClassVar[Reason] = Reason.FORBIDDEN

    @property
    def lacks_right(self) -> bool:
        """Whether it was RBAC: the message then names the verb and the resource.

        Source: apiserver `responsewriters.forbiddenMessage`.
        """
        return _NO_RIGHT.search(self.message) is not None

    def __str__(self) -> str:
        """What was refused, and what to do if a right is missing."""
        return f"{super().__str__()}; {_APPLY_AGAIN}" if self.lacks_right else super().__str__()


class NotFoundError(ApiError):
    """404: no such object, or no such resource (its CRD is not installed)."""

    @property
    def names_object(self) -> bool:
        """Whether the kind exists, and the object does not.

        Source: apimachinery `errors.NewNotFound`; a path that is not served has no such details.
        """
        return bool(self.object_name)

    def __str__(self) -> str:
        """What was not found, and what to do if it is one of our kinds."""
        unknown_kind = _OUR_KINDS in self.request and not self.names_object
        return f"{super().__str__()}; {NO_CRDS}" if unknown_kind else super().__str__()


class ConflictError(ApiError):
    """409: the resourceVersion or a precondition is stale, or another manager owns a field."""


class AlreadyExistsError(ApiError):
    """409 AlreadyExists: an object of that name exists."""


class GoneError(ApiError):
    """410: the resourceVersion or continue token is older than the server's history."""


class InvalidError(ApiError):
    """422: the object violates its schema or a CEL rule; `causes` name the fields."""

    reason: ClassVar[Reason] = Reason.INVALID


class TooManyRequestsError(ApiError):
    """429: the server is overloaded; wait `retry_after_seconds`."""


class UnavailableError(ApiError):
    """5xx: the server, or a proxy before it, cannot answer now."""


class ServerTimeoutError(UnavailableError):
    """504, or the reasons ServerTimeout and Timeout: the server's own time limit passed."""


_BY_REASON: Mapping[str, type[ApiError]] = {
    "AlreadyExists": AlreadyExistsError,
    "ServerTimeout": ServerTimeoutError,
    "Timeout": ServerTimeoutError,
}

_BY_STATUS: Mapping[int, type[ApiError]] = {
    400: BadRequestError,
    401: UnauthorizedError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    410: GoneError,
    422: InvalidError,
    429: TooManyRequestsError,
    504: ServerTimeoutError,
}


def error_of(
    request: str,
    status: int,
    answer: Mapping[str, Any],
    retry_after_seconds: float | None = None,
) -> ApiError:
    """Choose the type for a Status object; arguments as `ApiError`."""
    kind = _BY_REASON.get(str(answer.get("reason") or "")) or _BY_STATUS.get(status)
    if kind is None:
        kind = UnavailableError if status >= 500 else ApiError
    return kind(request, status, answer, retry_after_seconds)
