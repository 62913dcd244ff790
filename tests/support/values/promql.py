"""What queries of Prometheus name, held to the tables of the daemons' metrics."""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Final

from numapin_daemon.telemetry.metric import Kind, Metric
from numapin_enforcer.telemetry import table as enforcer
from numapin_operator.telemetry import table as operator

OF_TARGETS: Final = {"cluster", "instance", "job", "namespace", "node", "pod"}
"""Labels that come with the scrape."""
BY_PROMETHEUS: Final = {"ALERTS": {"alertname", "alertstate"}, "up": set[str]()}

_GROUPING: Final = r"by|without|on|ignoring|group_left|group_right"
_WORDS: Final = {"and", "bool", "offset", "or", "unless"}
_STRING: Final = r'"(?:[^"\\]|\\.)*"'
_GROUPS: Final = re.compile(rf"\b(?:{_GROUPING})\s*\(([^)]*)\)")
_SELECTOR: Final = re.compile(r"(?<![\w$.:])([a-zA-Z_:]\w*)\s*(\{[^}]*\}|\()?")
_MATCHER: Final = re.compile(rf"(\w+)\s*(=~|!~|!=|=)\s*({_STRING})")


def metrics() -> dict[str, list[Metric]]:
    """The metrics of both daemons, by the names of their series; some names are of both."""
    found: dict[str, list[Metric]] = {}
    for one in (*enforcer.METRICS, *operator.METRICS):
        histogram = one.kind is Kind.HISTOGRAM
        for suffix in ("_bucket", "_sum", "_count") if histogram else ("",):
            found.setdefault(one.name + suffix, []).append(one)
    return found


def selectors(query: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Each metric that a query names, with the value of each of its matchers."""
    for name, rest in _SELECTOR.findall(_GROUPS.sub("", query)):
        if rest != "(" and name not in _WORDS:
            yield name, {label: value[1:-1] for label, _, value in _MATCHER.findall(rest)}


def groupings(query: str) -> set[str]:
    """The labels by which a query groups or matches."""
    return {label for one in _GROUPS.findall(query) for label in re.findall(r"\w+", one)}


def unknown_parts(
    query: str, alerts: Collection[str] = (), variables: Collection[str] = ()
) -> set[str]:
    """What a query names and no metric has: names, labels and their values.

    `variables` are those that a dashboard puts in place of a value.
    """
    known, found, labels = metrics(), set[str](), set(OF_TARGETS)
    for name, matchers in selectors(query):
        if name not in known and name not in BY_PROMETHEUS:
            found.add(name)
            continue
        own = _labels(name, known)
        labels |= own
        found |= {f"{name}{{{label}}}" for label in matchers.keys() - own - OF_TARGETS}
        found |= set(_unknown_values(name, matchers, known, alerts))
    used = set(re.findall(r"\$\{?(\w+)", query))
    return found | (groupings(query) - labels) | (used - set(variables))


def _labels(name: str, known: Mapping[str, Collection[Metric]]) -> set[str]:
    own = {label for one in known.get(name, ()) for label in one.labels}
    bucket = {"le"} if name.endswith("_bucket") else set[str]()
    return own | bucket | BY_PROMETHEUS.get(name, set())


def _unknown_values(
    name: str,
    matchers: Mapping[str, str],
    known: Mapping[str, Collection[Metric]],
    alerts: Collection[str],
) -> Iterator[str]:
    """Values of matchers that no series begins with, of metrics whose values are known."""
    if name == "ALERTS" and matchers["alertname"] not in alerts:
        yield matchers["alertname"]
    for one in known.get(name, ()):
        for index, label in enumerate(one.labels):
            values = {series[index] for series in one.begins_with}
            if values and label in matchers and "$" not in matchers[label]:
                yield from set(matchers[label].split("|")) - values
