"""The answer to one request: /healthz, /readyz, and /metrics and documents if there are any."""

import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Final

from numapin_daemon.probes.health import Health
from numapin_daemon.telemetry.exposition import CONTENT_TYPE

PAGE_SECONDS: Final = 1.0
"""How long a page of metrics is answered again: making one takes milliseconds."""


class KeptPage:
    """A text that is made once in `PAGE_SECONDS` at most."""

    def __init__(self, make: Callable[[], str]) -> None:
        self._make, self._text, self._until = make, "", 0.0

    def __call__(self) -> str:
        """The text, as it was a moment ago or is now."""
        if time.monotonic() >= self._until:
            self._text = self._make()
            self._until = time.monotonic() + PAGE_SECONDS
        return self._text


def response(head: bytes, health: Health) -> bytes:
    """The whole answer to a request whose head is given. Source: RFC 9112."""
    method, _, rest = head.partition(b" ")
    target = rest.partition(b" ")[0].partition(b"?")[0]
    content_type = "text/plain; charset=utf-8"
    if method not in {b"GET", b"HEAD"}:
        status, text = HTTPStatus.METHOD_NOT_ALLOWED, "only GET\n"
    elif target == METRICS_PAGE and health.metrics is not None:
        status, text, content_type = HTTPStatus.OK, health.metrics(), CONTENT_TYPE
    elif document := health.documents.get(target):
        status, text, content_type = HTTPStatus.OK, document(), "application/json"
    elif page := _PAGES.get(target):
        is_good, text = page(health)
        status = HTTPStatus.OK if is_good else HTTPStatus.SERVICE_UNAVAILABLE
    else:
        status, text = HTTPStatus.NOT_FOUND, f"there are {' and '.join(_names(health))}\n"
    body = text.encode(errors="replace")
    lines = (
        f"HTTP/1.1 {status.value} {status.phrase}",
        f"Content-Type: {content_type}",
        f"Content-Length: {len(body)}",
        "Connection: close",
        *(("Allow: GET, HEAD",) if status is HTTPStatus.METHOD_NOT_ALLOWED else ()),
    )
    start = "".join(f"{line}\r\n" for line in lines).encode() + b"\r\n"
    return start if method == b"HEAD" else start + body


def _healthz(health: Health) -> tuple[bool, str]:
    if problem := health.fatal():
        return False, f"{problem}\n"
    remark = health.remark()
    return True, f"ok, but {remark}\n" if remark else "ok\n"


def _readyz(health: Health) -> tuple[bool, str]:
    missing, role = health.missing(), health.role()
    if not missing:
        return True, f"ok: {role}\n" if role else "ok\n"
    return False, "".join(f"{what}: {why}\n" for what, why in sorted(missing.items()))


def _names(health: Health) -> list[str]:
    metrics = (METRICS_PAGE,) if health.metrics is not None else ()
    return [page.decode() for page in (*_PAGES, *metrics, *health.documents)]


METRICS_PAGE: Final = b"/metrics"
_PAGES: Final = {b"/healthz": _healthz, b"/readyz": _readyz}
