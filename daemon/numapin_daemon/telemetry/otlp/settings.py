"""What is sent by OTLP, where and how, by the standard variables. Does no I/O.

Source: OpenTelemetry, "Environment Variable Specification" and "OpenTelemetry Protocol Exporter".
"""

import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote, urlsplit

METRICS: Final = "METRICS"
TRACES: Final = "TRACES"

PROTOCOL: Final = "http/protobuf"

TIMEOUT_MILLISECONDS: Final = "10000"

SPANS_AT_ONCE: Final = 32
"""OpenTelemetry's 512 take 4 MiB while they are encoded."""

_PATHS: Final = {METRICS: "v1/metrics", TRACES: "v1/traces"}
_COMPRESSIONS: Final = ("none", "gzip", "deflate")
_TEMPORALITIES: Final = ("cumulative", "delta", "lowmemory")
_HISTOGRAMS: Final = ("explicit_bucket_histogram", "base2_exponential_bucket_histogram")
_HEADER: Final = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+)\s*=(.*)")
_TEXT: Final = re.compile(r"[\t\x20-\x7e\x80-\xff]*")


class OtlpError(Exception):
    """A variable asks for something that is not there; the message says what to set instead."""


@dataclass(frozen=True, slots=True)
class OtlpSettings:
    """Where one signal is sent, and how.

    Attributes:
        url: the whole address.
        headers: of each request; they may hold a credential.
        timeout_seconds: for one batch, with all attempts.
        compression: `none`, `gzip` or `deflate`.
        authority: the file of the certificates that are trusted; empty for the system's.
        certificate: the file of the client's certificate; empty for none.
        key: the file of its key; empty if it is in `certificate`.
    """

    url: str
    headers: Mapping[str, str] = field(repr=False)
    timeout_seconds: float
    compression: str
    authority: str
    certificate: str
    key: str


@dataclass(frozen=True, slots=True)
class MetricPreferences:
    """In which form metrics are sent.

    Attributes:
        temporality: `cumulative`, `delta` or `lowmemory`.
        histogram: `explicit_bucket_histogram` or `base2_exponential_bucket_histogram`.
    """

    temporality: str
    histogram: str


@dataclass(frozen=True, slots=True)
class SpanLimits:
    """How many spans are kept until they are sent, each of which takes 1.3 KiB.

    Attributes:
        queue: how many may wait; further ones are dropped.
        batch: how many are sent at once.
    """

    queue: int
    batch: int


def wanted_signals(environment: Mapping[str, str]) -> frozenset[str]:
    """The signals for which an endpoint is set; none by default.

    Raises:
        OtlpError: another protocol or exporter than OTLP over HTTP is asked for.
    """
    if environment.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return frozenset()
    return frozenset(one for one in (METRICS, TRACES) if _is_wanted(environment, one))


def otlp_settings(environment: Mapping[str, str], signal: str) -> OtlpSettings:
    """The settings of one of the wanted signals.

    Raises:
        OtlpError: a value is invalid.
    """
    certificate, key = (
        _either(environment, signal, f"CLIENT_{one}")[1] for one in ("CERTIFICATE", "KEY")
    )
    if key and not certificate:
        raise OtlpError(
            "OTEL_EXPORTER_OTLP_CLIENT_KEY is set: set OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE, too"
        )
    return OtlpSettings(
        url=_url(environment, signal),
        headers=_headers(environment, signal),
        timeout_seconds=_timeout_seconds(environment, signal),
        compression=_one_of(*_either(environment, signal, "COMPRESSION"), _COMPRESSIONS),
        authority=_either(environment, signal, "CERTIFICATE")[1],
        certificate=certificate,
        key=key,
    )


def metric_preferences(environment: Mapping[str, str]) -> MetricPreferences:
    """In which form metrics are sent.

    Raises:
        OtlpError: a value is invalid.
    """
    temporality = "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE"
    histogram = "OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION"
    return MetricPreferences(
        _one_of(temporality, environment.get(temporality, ""), _TEMPORALITIES),
        _one_of(histogram, environment.get(histogram, ""), _HISTOGRAMS),
    )


def span_limits(environment: Mapping[str, str], default_queue: int) -> SpanLimits:
    """How many spans are kept until they are sent.

    Raises:
        OtlpError: a value is invalid.
    """
    queue = _count(environment, "OTEL_BSP_MAX_QUEUE_SIZE", default_queue)
    batch = _count(environment, "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", SPANS_AT_ONCE)
    return SpanLimits(queue, min(batch, queue))


def _is_wanted(environment: Mapping[str, str], signal: str) -> bool:
    if not _either(environment, signal, "ENDPOINT")[1]:
        return False
    exporter = environment.get(f"OTEL_{signal}_EXPORTER") or "otlp"
    if exporter not in {"otlp", "none"}:
        raise OtlpError(f"OTEL_{signal}_EXPORTER is {exporter!r}: set it to otlp or none")
    name, protocol = _either(environment, signal, "PROTOCOL")
    if exporter == "otlp" and protocol not in {"", PROTOCOL}:
        raise OtlpError(
            f"{name} is {protocol!r}: set it to {PROTOCOL}, and the endpoint "
            "to the receiver's port for HTTP, mostly 4318"
        )
    return exporter == "otlp"


def _url(environment: Mapping[str, str], signal: str) -> str:
    """The signal's own endpoint as it is; the one for all signals, with the signal's path."""
    name, text = _either(environment, signal, "ENDPOINT")
    try:
        parts = urlsplit(text)
        valid = bool(parts.hostname) and parts.port != 0
    except ValueError:  # the port, or brackets
        valid = False
    if not valid or parts.scheme not in {"http", "https"} or "@" in parts.netloc:
        raise OtlpError(f"{name} is not http://HOST:PORT or https://HOST:PORT, with a path or not")
    return text if signal in name else f"{text.rstrip('/')}/{_PATHS[signal]}"


def _headers(environment: Mapping[str, str], signal: str) -> Mapping[str, str]:
    """Parse `name=value,name=value`, with values as in URLs. An error does not repeat a value."""
    name, text = _either(environment, signal, "HEADERS")
    headers = {}
    for number, pair in enumerate(text.split(","), 1):
        if not pair.strip():
            continue
        found = _HEADER.fullmatch(pair.strip())
        value = unquote(found[2]).strip() if found else ""
        if not found or not _TEXT.fullmatch(value):
            raise OtlpError(f"{name}: header {number} is not NAME=VALUE, with VALUE as in a URL")
        headers[found[1].lower()] = value
    return headers


def _timeout_seconds(environment: Mapping[str, str], signal: str) -> float:
    name, text = _either(environment, signal, "TIMEOUT")
    try:
        milliseconds = float(text or TIMEOUT_MILLISECONDS)
    except ValueError:
        milliseconds = math.nan
    if not 0 < milliseconds < math.inf:
        raise OtlpError(f"{name} is {text!r}: set it to milliseconds, such as 10000")
    return milliseconds / 1000


def _count(environment: Mapping[str, str], name: str, default: int) -> int:
    text = environment.get(name) or str(default)
    if not (text.isascii() and text.isdecimal() and int(text)):
        raise OtlpError(f"{name} is {text!r}: set it to a number, at least 1")
    return int(text)


def _one_of(name: str, text: str, known: Collection[str]) -> str:
    """A value in lower case; the first known one if it is empty."""
    value = text.strip().lower() or next(iter(known))
    if value not in known:
        raise OtlpError(f"{name} is {text!r}: set it to {' or '.join(known)}")
    return value


def _either(environment: Mapping[str, str], signal: str, setting: str) -> tuple[str, str]:
    """The signal's own variable, else the one for all signals; its value is empty if not set."""
    own, common = f"OTEL_EXPORTER_OTLP_{signal}_{setting}", f"OTEL_EXPORTER_OTLP_{setting}"
    return (
        (own, found) if (found := environment.get(own)) else (common, environment.get(common, ""))
    )
