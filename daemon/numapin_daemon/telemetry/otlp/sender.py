"""Posts OTLP messages over HTTP, with the standard library: requests would take 4 MiB of memory.

Source: OpenTelemetry Protocol Specification, "OTLP/HTTP".
"""

import gzip
import http.client
import logging
import random
import ssl
import time
import urllib.request
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from threading import Event
from typing import Any, Final
from urllib.error import HTTPError

from numapin_daemon.telemetry.otlp.settings import OtlpError, OtlpSettings

LOG: Final = logging.getLogger(__name__)

RETRYABLE: Final = frozenset({429, 502, 503, 504})

FIRST_WAIT_SECONDS: Final = 1.0
"""Before the second attempt; each further wait is twice as long."""

MOST_ANSWER_BYTES: Final = 65536

_COMPRESS: Final[dict[str, Callable[[bytes], bytes]]] = {
    "none": bytes,
    "gzip": gzip.compress,
    "deflate": zlib.compress,
}


@dataclass(frozen=True, slots=True)
class _Failure:
    """Why an attempt failed; `wait_seconds` is what the receiver asked for, None if nothing."""

    why: str
    retryable: bool
    wait_seconds: float | None = None


class OtlpSender:
    """Sends the messages of one signal; belongs to the thread that sends, but for `stop`.

    The system's proxies are used (`HTTPS_PROXY`, `HTTP_PROXY`, `NO_PROXY`). A redirection is an
    error: the headers may hold a credential.
    """

    def __init__(self, settings: OtlpSettings) -> None:
        """Connect to nothing yet.

        Raises:
            OtlpError: a certificate or key cannot be read.
        """
        self._settings = settings
        self._headers = {"user-agent": "numapin", **settings.headers}
        self._headers["content-type"] = "application/x-protobuf"
        if settings.compression != "none":
            self._headers["content-encoding"] = settings.compression
        secure = urllib.request.HTTPSHandler(context=_tls(settings))
        self._opener = urllib.request.build_opener(secure, _NoRedirections)
        self._stopped, self._failing = Event(), False

    def send(self, message: bytes) -> bool:
        """Send a message; wait and try again while that may help and the timeout has not passed.

        Only the first of several failures is logged as an error.

        Returns:
            Whether it was accepted.
        """
        body = _COMPRESS[self._settings.compression](message)
        failure = self._send(body)
        if failure is None:
            if self._failing:
                LOG.info("OTLP is accepted again", extra={"url": self._settings.url})
        elif not self._failing:
            fields = {"url": self._settings.url, "why": failure.why}
            LOG.error("the receiver of OTLP did not accept what was sent", extra=fields)
        self._failing = failure is not None
        return failure is None

    def stop(self) -> None:
        """Have `send` wait no longer; may be called in any thread."""
        self._stopped.set()

    def _send(self, body: bytes) -> _Failure | None:
        deadline_seconds = time.monotonic() + self._settings.timeout_seconds
        wait_seconds = FIRST_WAIT_SECONDS * random.uniform(0.8, 1.2)  # noqa: S311 - not a secret
        while True:
            left_seconds = deadline_seconds - time.monotonic()
            failure = self._attempt(body, max(0.001, left_seconds))
            if failure is None or not failure.retryable:
                return failure
            pause_seconds = failure.wait_seconds or wait_seconds
            if time.monotonic() + pause_seconds >= deadline_seconds:
                return failure
            if self._stopped.wait(pause_seconds):
                return failure
            wait_seconds *= 2

    def _attempt(self, body: bytes, timeout_seconds: float) -> _Failure | None:
        request = urllib.request.Request(  # noqa: S310 - the settings allow http and https alone
            self._settings.url, body, dict(self._headers), method="POST"
        )
        try:
            with self._opener.open(request, timeout=timeout_seconds) as answer:
                answer.read(MOST_ANSWER_BYTES)
        except HTTPError as error:
            with error:
                retryable = error.code in RETRYABLE
                wait_seconds = _seconds(error.headers.get("Retry-After", ""))
                return _Failure(f"{error.code} {error.reason}", retryable, wait_seconds)
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", error)  # of URLError, which wraps another one
            is_tls = isinstance(reason, ssl.SSLError)
            return _Failure(str(reason) or type(reason).__name__, not is_tls)
        return None


class _NoRedirections(urllib.request.HTTPRedirectHandler):
    """Takes a redirection for an error."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        """Follow none."""


def _tls(settings: OtlpSettings) -> ssl.SSLContext | None:
    """What https needs; None for http."""
    if not settings.url.startswith("https:"):
        return None
    return _context(settings.authority, settings.certificate, settings.key)


@cache
def _context(authority: str, certificate: str, key: str) -> ssl.SSLContext:
    """One for both signals, if they are sent alike: the system's certificates take 1 MiB."""
    file = authority
    try:
        context = ssl.create_default_context(cafile=file or None)
        if file := certificate:
            context.load_cert_chain(file, key or None)
    except OSError as error:  # also ssl.SSLError
        raise OtlpError(
            f"OTLP: {file or 'the certificates of the system'} cannot be loaded: {error}"
        ) from error
    return context


def _seconds(header: str) -> float | None:
    """Parse Retry-After in seconds; a date is not waited for."""
    return float(header) if header.isascii() and header.isdecimal() else None
