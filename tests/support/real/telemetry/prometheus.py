"""A real Prometheus that scrapes daemons under test, and promtool's opinion of a page."""

import json
import re
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

CONFIGURATION = """\
global:
  scrape_interval: 1s
  scrape_timeout: 1s
  evaluation_interval: 1s
rule_files: {rules}
scrape_configs:
  - job_name: numapin
    static_configs:
      - targets: {targets}
        labels: {labels}
"""

FIRES_AFTER = "3s"
"""How long what a rule describes must last before its alert fires."""


@dataclass(frozen=True)
class Prometheus:
    """A running server, on a port of the loopback."""

    port: int

    def get(self, page: str, **parameters: str) -> Any:
        """The data of one page of its API."""
        query = urllib.parse.urlencode(parameters)
        url = f"http://127.0.0.1:{self.port}/api/v1/{page}?{query}"
        with urllib.request.urlopen(url, timeout=30) as answer:
            return json.load(answer)["data"]

    def values(self, query: str) -> dict[tuple[tuple[str, str], ...], float]:
        """The present values of a query by labels, without the target's own."""
        return {
            _labels(one["metric"]): float(one["value"][1])
            for one in self.get("query", query=query)["result"]
        }

    def value(self, query: str) -> float:
        """The only value of a query; -1 while there is none."""
        return next(iter(self.values(query).values()), -1.0)

    def types(self) -> dict[str, str]:
        """The type of each metric that was scraped."""
        return {name: found[0]["type"] for name, found in self.get("metadata").items()}

    def alerts(self) -> dict[str, set[str]]:
        """The states of the alerts that are pending or firing, by name."""
        found: dict[str, set[str]] = {}
        for one in self.get("alerts")["alerts"]:
            found.setdefault(one["labels"]["alertname"], set()).add(one["state"])
        return found

    def series(self) -> int:
        """How many series the newest scrapes have."""
        return int(self.value("sum(scrape_samples_post_metric_relabeling)"))


@contextmanager
def prometheus(
    folder: Path,
    port: int,
    *targets: str,
    labels: Mapping[str, str] = MappingProxyType({}),
    rules: Sequence[Path] = (),
) -> Iterator[Prometheus]:
    """Run a server that scrapes `targets` each second, and as often evaluates rule files.

    Only the interval of the rules, and how long they wait (`for`), are not those of the file.

    `labels` are those that every series gets.
    """
    folder.mkdir(parents=True)
    configuration = folder / "prometheus.yml"
    quick = [_quick(one, folder) for one in rules]
    filled = {"targets": targets, "labels": dict(labels), "rules": [str(one) for one in quick]}
    text = CONFIGURATION.format(**{name: json.dumps(one) for name, one in filled.items()})
    configuration.write_text(text)
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(
            [
                "prometheus",
                f"--config.file={configuration}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            stdout=log,
            stderr=log,
        )
    try:
        yield Prometheus(port)
    finally:
        process.terminate()
        process.wait()


def _quick(rules: Path, folder: Path) -> Path:
    """A copy of a rule file that is evaluated as often as the server's configuration says.

    An alert fires after `FIRES_AFTER` there, not minutes or an hour.
    """
    copy = folder / rules.name
    text = re.sub(r"(?m)^    interval: .*\n", "", rules.read_text())
    copy.write_text(re.sub(r"(?m)^        for: \d+[mh]$", f"        for: {FIRES_AFTER}", text))
    return copy


def lint(page: str) -> dict[str, set[str]]:
    """What promtool finds fault with in the text of a page, by metric.

    Raises:
        AssertionError: the page is not in the text format of Prometheus.
    """
    done = subprocess.run(
        ["promtool", "check", "metrics"], input=page, capture_output=True, text=True, check=False
    )
    assert done.returncode in {0, 3}, f"not in Prometheus' format: {done.stderr}"
    faults: dict[str, set[str]] = {}
    for line in done.stderr.splitlines():
        name, _, fault = line.partition(" ")
        faults.setdefault(name, set()).add(fault)
    return faults


def parse(page: str) -> dict[str, dict[str, float]]:
    """The values of a page by name and by the text of the labels."""
    found: dict[str, dict[str, float]] = {}
    for line in page.splitlines():
        if line and not line.startswith("#"):
            matched = re.fullmatch(r"(\w+)(?:\{(.*)\})? (\S+)", line)
            assert matched is not None, line
            found.setdefault(matched[1], {})[matched[2] or ""] = float(matched[3])
    return found


def _labels(metric: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    own = {"__name__", "instance", "job"}
    return tuple(sorted((name, value) for name, value in metric.items() if name not in own))
