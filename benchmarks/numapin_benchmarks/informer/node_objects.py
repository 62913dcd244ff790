"""NodeAssignments of a large cluster in two forms, and what is kept of them.

`today` is one object for a node, which operator and enforcer write; `apart` is the form of decision
0007: an object with a line for each container, and a small report.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from numapin_benchmarks.api_cost.layouts import kinds
from numapin_benchmarks.api_cost.layouts.entries import CREATED, hardware, placed
from numapin_benchmarks.api_cost.layouts.split import REPORT_KIND, REPORT_PLURAL, apart
from numapin_benchmarks.api_cost.layouts.whole import (
    body,
    changed_status,
    listed,
    settings,
    today_spec,
    today_status,
)
from numapin_benchmarks.api_cost.values import Plain, parse_line
from numapin_client.resources import Json, Resource
from numapin_lab.played.enforcers import node_name, uid_of
from numapin_operator.observe.assignments.view import AssignmentView

ASSIGNMENTS: Final = "nodeassignments"


@dataclass(frozen=True, slots=True)
class Assigned:
    """What is kept of an object with lines."""

    name: str
    generation: int
    pools: Mapping[str, str]
    containers: tuple[Plain, ...]

    @classmethod
    def decode(cls, raw: Json) -> "Assigned":
        """Read it."""
        metadata, spec = raw["metadata"], raw["spec"]
        lines = tuple(map(parse_line, spec["containers"]))
        return cls(metadata["name"], metadata.get("generation", 1), spec["pools"], lines)


@dataclass(frozen=True, slots=True)
class Reported:
    """What is kept of a report."""

    name: str
    observed: int
    ready: str
    not_running: tuple[str, ...]

    @classmethod
    def decode(cls, raw: Json) -> "Reported":
        """Read it."""
        status = raw["status"]
        ready = next(one["status"] for one in status["conditions"] if one["type"] == "Ready")
        observed, away = status["observedGeneration"], status["notRunning"]
        return cls(raw["metadata"]["name"], observed, ready, tuple(away))


@dataclass(frozen=True)
class Form:
    """One form.

    Attributes:
        definitions: the CustomResourceDefinitions.
        decoders: what is kept of the objects of each resource.
        objects: those of node `number` with so many containers after `step` pods, by resource.
    """

    definitions: tuple[Json, ...]
    decoders: Mapping[Resource, Callable[[Json], Any]]
    objects: Callable[[int, int, int], Mapping[Resource, Json]]

    def in_etcd(self, nodes: int, count: int) -> Iterator[tuple[str, Json]]:
        """The objects of all nodes with their keys in etcd."""
        for number in range(nodes):
            for resource, one in self.objects(number, count, 0).items():
                name = node_name(number)
                metadata = {"name": name, "uid": uid_of(f"{resource.plural}/{name}")}
                metadata |= {"creationTimestamp": CREATED}
                key = f"/registry/{resource.group}/{resource.plural}/{name}"
                yield key, one | {"metadata": metadata | {"generation": 1}}


def _resource(layout: str, plural: str, kind: str) -> Resource:
    return Resource(kinds.group(layout), kinds.VERSION, plural, kind, namespaced=False)


TODAY: Final = _resource("today", ASSIGNMENTS, "NodeAssignment")
APART: Final = _resource("apart", ASSIGNMENTS, "NodeAssignment")
REPORTS: Final = _resource("apart", REPORT_PLURAL, REPORT_KIND)


def _today(number: int, count: int, step: int) -> Mapping[Resource, Json]:
    machine = hardware(count)
    machine["numaNodes"][0]["memoryBytes"] -= number << 12
    first = number * count + step
    status = today_status(count, first) | {"topology": machine}
    return {TODAY: body("today", TODAY.kind, {}, spec=today_spec(count, first), status=status)}


def _apart(number: int, count: int, step: int) -> Mapping[Resource, Json]:
    first = number * count + step
    spec = settings(count) | {"containers": listed(placed(count, first))}
    return {
        APART: body("apart", APART.kind, {}, spec=spec),
        REPORTS: body("apart", REPORT_KIND, {}, status=changed_status(count, step)),
    }


FORMS: Final[Mapping[str, Form]] = {
    "today": Form((kinds.today("today"),), {TODAY: AssignmentView.decode}, _today),
    "apart": Form(apart("apart").kinds, {APART: Assigned.decode, REPORTS: Reported.decode}, _apart),
}
