"""Sends metrics and traces by OTLP for as long as a daemon runs, if that is asked for."""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from numapin_daemon.telemetry.meter import Meter
from numapin_daemon.telemetry.otlp.settings import (
    OtlpError,
    metric_preferences,
    otlp_settings,
    span_limits,
    wanted_signals,
)
from numapin_daemon.telemetry.process_table import OTLP_REFUSED
from numapin_daemon.telemetry.span import SpanSink
from numapin_daemon.telemetry.traced_logs import traced_logs

if TYPE_CHECKING:
    from numapin_daemon.telemetry.otlp.sdk import OtlpExport

LOG: Final = logging.getLogger(__name__)

REFUSED: Final = "nothing is sent by OTLP"


@dataclass(frozen=True, slots=True)
class Exporting:
    """What is sent by OTLP.

    Attributes:
        traces: takes spans; None if no traces are sent.
        problem: why nothing is sent although that is asked for; empty otherwise.
    """

    traces: SpanSink | None = None
    problem: str = ""


@asynccontextmanager
async def exporting(
    program: str,
    attributes: Mapping[str, str],
    meter: Meter,
    environment: Mapping[str, str],
    most_spans: int,
) -> AsyncIterator[Exporting]:
    """Send what the standard variables ask for; at the end, what is left.

    The daemon runs without it if a variable asks for something that is not there, or has a value
    that nobody understands: a webhook may set such variables for every pod of a cluster. With
    traces, log lines about a pod have its trace id.

    Args:
        program: the name of the service, unless OTEL_SERVICE_NAME is set.
        attributes: what is known of this process.
        meter: the metrics; also says whether the variables are refused.
        environment: has the variables. The SDK reads its own ones of this process.
        most_spans: how many spans may wait, unless OTEL_BSP_MAX_QUEUE_SIZE is set.
    """
    export: OtlpExport | None = None
    problem = ""
    try:
        export = _start(program, attributes, meter, environment, most_spans)
    except Exception as error:  # the SDK refuses values of its variables with any error
        known = isinstance(error, OtlpError)
        hint = "" if known else f"{type(error).__name__}; is a variable OTEL_* wrong? "
        problem = f"{REFUSED}: {hint}{error}"
        LOG.exception(REFUSED, extra={"why": error}, exc_info=None if known else error)
    meter.read_from(lambda: {OTLP_REFUSED: {(): float(bool(problem))}})
    traces = export.traces if export is not None else None
    try:
        with traced_logs() if traces is not None else nullcontext():
            yield Exporting(traces, problem)
    finally:
        if export is not None:
            await asyncio.to_thread(export.shut_down)


def _start(
    program: str,
    attributes: Mapping[str, str],
    meter: Meter,
    environment: Mapping[str, str],
    most_spans: int,
) -> "OtlpExport | None":
    """Begin to send; None if nothing is wanted.

    Raises:
        OtlpError: a variable asks for something that is not there, or has an invalid value; a
            package is not installed.
        Exception: the SDK does not understand one of its own variables.
    """
    signals = wanted_signals(environment)
    if not signals:
        return None
    settings = {signal: otlp_settings(environment, signal) for signal in signals}
    how = metric_preferences(environment), span_limits(environment, most_spans)
    try:
        from numapin_daemon.telemetry.otlp.sdk import OtlpExport  # noqa: PLC0415 - see there
    except ModuleNotFoundError as error:
        raise OtlpError(f"{error}: pip install 'numapin[otlp]'") from error
    export = OtlpExport(program, attributes, meter)
    try:
        export.start(settings, *how)
    except Exception:
        export.shut_down()  # at once: nothing waits to be sent
        raise
    LOG.info("sending by OTLP", extra={"signals": sorted(signals)})
    return export
