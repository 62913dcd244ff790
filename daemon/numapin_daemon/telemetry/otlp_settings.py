"""Which signals are sent by OTLP, by the standard variables. Does no I/O.

Source: OpenTelemetry, "Environment Variable Specification" and "OpenTelemetry Protocol Exporter".
"""

from collections.abc import Mapping
from typing import Final

METRICS: Final = "METRICS"
TRACES: Final = "TRACES"

PROTOCOL: Final = "http/protobuf"


class OtlpError(Exception):
    """A variable asks for something that is not there; the message says what to set instead."""


def wanted_signals(environment: Mapping[str, str]) -> frozenset[str]:
    """The signals for which an endpoint is set; none by default.

    Raises:
        OtlpError: another protocol or exporter than OTLP over HTTP is asked for.
    """
    if environment.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return frozenset()
    return frozenset(one for one in (METRICS, TRACES) if _is_wanted(environment, one))


def _is_wanted(environment: Mapping[str, str], signal: str) -> bool:
    if not _either(environment, signal, "ENDPOINT"):
        return False
    exporter = environment.get(f"OTEL_{signal}_EXPORTER") or "otlp"
    if exporter not in {"otlp", "none"}:
        raise OtlpError(f"OTEL_{signal}_EXPORTER is {exporter!r}: set it to otlp or none")
    protocol = _either(environment, signal, "PROTOCOL") or PROTOCOL
    if exporter == "otlp" and protocol != PROTOCOL:
        raise OtlpError(
            f"OTEL_EXPORTER_OTLP_PROTOCOL is {protocol!r}: set it to {PROTOCOL}, and the endpoint "
            "to the receiver's port for HTTP, mostly 4318"
        )
    return exporter == "otlp"


def _either(environment: Mapping[str, str], signal: str, setting: str) -> str:
    """The signal's own variable, else the one for all signals; empty if neither is set."""
    own = environment.get(f"OTEL_EXPORTER_OTLP_{signal}_{setting}")
    return own or environment.get(f"OTEL_EXPORTER_OTLP_{setting}", "")
