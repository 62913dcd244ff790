"""A real OpenTelemetry collector, and what it has received."""

import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

CONFIGURATION = """\
receivers:
  otlp:
    protocols:
      http:
        endpoint: 127.0.0.1:{port}
exporters:
  debug:
    verbosity: detailed
    use_internal_logger: false
service:
  telemetry:
    metrics:
      level: none
  pipelines:
    traces:
      receivers: [otlp]
      exporters: [debug]
    metrics:
      receivers: [otlp]
      exporters: [debug]
"""

READY = "Everything is ready"
ATTRIBUTE = re.compile(r"^ +-> ([\w.]+): (?:Str|Int|Double|Bool)\((.*)\)$", re.MULTILINE)
FIELD = re.compile(r"^ +(Trace ID|Parent ID|ID|Name|Start time|End time) +: ?(.*)$", re.MULTILINE)
METRIC = re.compile(r"^ +-> (Name|Unit|DataType|IsMonotonic): (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class ReceivedSpan:
    """One span as the collector prints it."""

    service: str
    name: str
    trace: str
    id: str
    parent: str
    begin: str
    end: str
    attributes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Collector:
    """A running collector that takes OTLP over HTTP."""

    port: int
    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        """The variables that have a program send to it."""
        return {
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{self.port}",
            "OTEL_METRIC_EXPORT_INTERVAL": "500",
            "OTEL_BSP_SCHEDULE_DELAY": "200",
        }

    @property
    def log(self) -> str:
        """What the collector says of itself."""
        return (self.folder / "otelcol.log").read_text()

    def is_ready(self) -> bool:
        """Whether it takes requests."""
        return READY in self.log

    def spans(self) -> list[ReceivedSpan]:
        """Every span so far."""
        return [
            _span(service, text)
            for service, resource in self._resources("ResourceSpans")
            for text in re.split(r"^Span #\d+$", resource, flags=re.MULTILINE)[1:]
        ]

    def metrics(self, service: str) -> dict[str, dict[str, str]]:
        """What the descriptors of a service's metrics say, by name."""
        found = {}
        for sender, resource in self._resources("ResourceMetrics"):
            if sender == service:
                for text in re.split(r"^Metric #\d+$", resource, flags=re.MULTILINE)[1:]:
                    about = dict(METRIC.findall(text))
                    found[about["Name"]] = about
        return found

    def _resources(self, kind: str) -> Iterator[tuple[str, str]]:
        """Each block of one kind with the name of the service that sent it."""
        text = (self.folder / "received.txt").read_text()
        for part in re.split(r"^(?=Resource(?:Spans|Metrics) #\d+$)", text, flags=re.MULTILINE):
            if part.startswith(kind):
                yield dict(ATTRIBUTE.findall(part.split("Scope")[0])).get("service.name", ""), part


@contextmanager
def collector(program: Path, folder: Path, port: int) -> Iterator[Collector]:
    """Run a collector until the end of the context."""
    folder.mkdir(parents=True)
    configuration = folder / "otelcol.yaml"
    configuration.write_text(CONFIGURATION.format(port=port))
    with (folder / "otelcol.log").open("wb") as log, (folder / "received.txt").open("wb") as out:
        process = subprocess.Popen(
            [program, f"--config=file:{configuration}"], stdout=out, stderr=log
        )
    try:
        yield Collector(port, folder)
    finally:
        process.kill()  # it would wait for senders that keep their connection
        process.wait()


def moment(text: str) -> datetime:
    """A time as the collector prints it, to the microsecond."""
    date, time, *_ = text.split()
    whole, _, fraction = time.partition(".")
    return datetime.fromisoformat(f"{date}T{whole}.{fraction[:6].ljust(6, '0')}+00:00")


def _span(service: str, text: str) -> ReceivedSpan:
    fields = dict(FIELD.findall(text))
    return ReceivedSpan(
        service,
        fields["Name"],
        fields["Trace ID"],
        fields["ID"],
        fields.get("Parent ID", ""),
        fields["Start time"],
        fields["End time"],
        dict(ATTRIBUTE.findall(text)),
    )
