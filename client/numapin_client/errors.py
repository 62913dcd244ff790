"""What can go wrong between us and the API server, as types that carry the data."""

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

from numapin_api.conditions import Reason


class ClientError(Exception):
    """The API server could not be asked, or did not do as asked."""

    retry_after_seconds: float | None = None
    """How long the server asked us to wait, when it did."""


class LoginError(ClientError):
    """There is no usable way to reach and be known to an API server: says where and the remedy."""


class ConnectionFailedError(ClientError):
    """No answer: refused, cut, timed out, not trusted, or not a Kubernetes API at all."""

    def __init__(self, request: str, why: str, remedy: str = "") -> None:
        super().__init__(f"{request}: {why}" + (f"; {remedy}" if remedy else ""))
        self.request, self.why, self.remedy = request, why, remedy


class IdleTimeoutError(ConnectionFailedError):
    """The server was silent for longer than it may be."""


class MalformedAnswerError(ConnectionFailedError):
    """Something answered that does not speak as a Kubernetes API server does."""


class Cause(NamedTuple):
    """One of the reasons a request was refused."""

    reason: str
    """Machine-readable, such as `FieldValueInvalid` or `FieldManagerConflict`."""
    field: str
    """Path of the field, such as `spec.options.fullPCPUsOnly`; empty when no field is to blame."""
    message: str


class ApiError(ClientError):
    """The API server answered, and the answer is no.

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
            request: what was asked, such as `GET https://host/api/v1/pods`.
            status: the HTTP status, or the `code` of a Status that came as a watch event.
            answer: the Status object; whatever it lacks is left empty.
            retry_after_seconds: the Retry-After header, if there was one.
        """
        details = answer.get("details") or {}
        self.request, self.status = request, status
        self.status_reason = str(answer.get("reason") or "")
        self.message = str(answer.get("message") or "no message")
        self.retry_after_seconds = retry_after_seconds
        if retry_after_seconds is None and details.get("retryAfterSeconds"):
            self.retry_after_seconds = float(details["retryAfterSeconds"])
        self.causes = tuple(
            Cause(each.get("reason", ""), each.get("field", ""), each.get("message", ""))
            for each in details.get("causes") or ()
        )
        why = f"{status} {self.status_reason}".rstrip()
        super().__init__(f"{request}: {why}: {self.message}")


class BadRequestError(ApiError):
    """400: the request itself is malformed."""


class UnauthorizedError(ApiError):
    """401: the server does not know who we are, also after the credential was renewed."""


class ForbiddenError(ApiError):
    """403: we are known, and RBAC or an admission policy says no."""

    reason: ClassVar[Reason] = Reason.FORBIDDEN


class NotFoundError(ApiError):
    """404: no such object, or no such resource (its CRD is not installed)."""


class ConflictError(ApiError):
    """409: the resourceVersion or a precondition is stale, or another manager owns a field."""


class AlreadyExistsError(ApiError):
    """409 AlreadyExists: there is an object of that name."""


class GoneError(ApiError):
    """410: the resourceVersion or continue token is older than the server's history."""


class InvalidError(ApiError):
    """422: the object breaks its schema or a CEL rule; `causes` name the fields."""

    reason: ClassVar[Reason] = Reason.INVALID


class TooManyRequestsError(ApiError):
    """429: the server sheds load; wait `retry_after_seconds`."""


class UnavailableError(ApiError):
    """5xx: the server, or what stands before it, cannot answer now."""


class ServerTimeoutError(UnavailableError):
    """504, or reasons ServerTimeout and Timeout: not done within the server's own limit."""


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
