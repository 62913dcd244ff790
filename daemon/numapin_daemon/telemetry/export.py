"""Sends metrics and traces by OTLP for as long as a daemon runs, if that is asked for."""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, nullcontext
from typing import Final

from numapin_daemon.extras import needs_extra
from numapin_daemon.telemetry.meter import Meter
from numapin_daemon.telemetry.otlp.settings import (
    TRACES,
    metric_preferences,
    otlp_settings,
    span_limits,
    wanted_signals,
)
from numapin_daemon.telemetry.span import SpanSink
from numapin_daemon.telemetry.traced_logs import traced_logs

LOG: Final = logging.getLogger(__name__)

_PACKAGES: Final = {
    "opentelemetry": "opentelemetry-sdk",
    "opentelemetry.sdk": "opentelemetry-sdk",
    "opentelemetry.exporter": "opentelemetry-exporter-otlp-proto-common",
}


@asynccontextmanager
async def exporting(
    program: str,
    attributes: Mapping[str, str],
    meter: Meter,
    environment: Mapping[str, str],
    most_spans: int,
) -> AsyncIterator[SpanSink | None]:
    """Send what the standard variables ask for; at the end, what is left.

    With traces, log lines about a pod have its trace id.

    Args:
        program: the name of the service, unless OTEL_SERVICE_NAME is set.
        attributes: what is known of this process.
        meter: the metrics.
        environment: has the variables. The SDK reads its own ones of this process.
        most_spans: how many spans may wait, unless OTEL_BSP_MAX_QUEUE_SIZE is set.

    Yields:
        What takes spans; None if no traces are wanted.

    Raises:
        OtlpError: a variable asks for something that is not there, or has an invalid value.
        SystemExit: a package is not installed.
    """
    signals = wanted_signals(environment)
    if not signals:
        yield None
        return
    settings = {signal: otlp_settings(environment, signal) for signal in signals}
    how = metric_preferences(environment), span_limits(environment, most_spans)
    with needs_extra(program, "otlp", _PACKAGES):
        from numapin_daemon.telemetry.otlp.sdk import OtlpExport  # noqa: PLC0415 - see there
    export = OtlpExport(program, attributes, meter)
    export.start(settings, *how)
    LOG.info("sending by OTLP", extra={"signals": sorted(signals)})
    try:
        with traced_logs() if TRACES in signals else nullcontext():
            yield export.traces
    finally:
        await asyncio.to_thread(export.shut_down)
