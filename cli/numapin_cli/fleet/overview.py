"""What a cluster's numapin is like on one screen, and what of it needs a person.

Does no I/O.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from numapin_api.conditions.reasons import meaning_of
from numapin_api.names import PAUSED, RELEASED
from numapin_api.quantity import plural
from numapin_api.text import first_texts
from numapin_cli.advice.policies import explain_policy
from numapin_cli.fleet.node_rows import NodeRow
from numapin_cli.fleet.programs import LABEL, Program
from numapin_operator.observe.records import PolicyView

_NAMED: Final = 3

_APART: Final = {PAUSED: "nothing changes there", RELEASED: "no policy governs it"}
"""What it means that a node is paused or released by a person."""

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Concern:
    """Something that needs a person.

    Attributes:
        what: one sentence.
        look: the command that says more; empty if there is none.
        is_ready: whether all is Ready in spite of it.
    """

    what: str
    look: str = ""
    is_ready: bool = False


@dataclass(frozen=True, slots=True)
class Overview:
    """The numapin of a cluster.

    Attributes:
        client: the version of this command.
        kubernetes: that of the API server.
        served: the versions of numapin's API that it serves, the newest first.
        namespace: where numapin's pods were looked for.
        programs: its components; None if their pods cannot be read.
        policies: the policies by name.
        rows: a line of each node.
        away: the Nodes on which no enforcer is expected to answer, with the reason.
        notes: what could not be read, a sentence each.
    """

    client: str
    kubernetes: str
    served: Sequence[str]
    namespace: str
    programs: Sequence[Program] | None = None
    policies: Sequence[PolicyView] = ()
    rows: Sequence[NodeRow] = ()
    away: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()

    @property
    def concerns(self) -> list[Concern]:
        """What needs a person, the worst first."""
        found = (self._of_programs(), self._of_policies(), self._of_nodes(), self._in_spite())
        return [one for each in found for one in each]

    @property
    def is_ready(self) -> bool:
        """Whether everything is as the policies say, on each node that can be served."""
        return all(one.is_ready for one in self.concerns)

    @property
    def waited_for(self) -> list[NodeRow]:
        """The lines of the nodes that a policy governs, that can be served and are not paused."""
        governed = (row for row in self.rows if row.is_governed and not row.is_paused)
        return [row for row in governed if row.name not in self.away]

    @property
    def states(self) -> Mapping[str, int]:
        """How many nodes are in each state, by name."""
        counts: dict[str, int] = {}
        for row in self.rows:
            state = self.away.get(row.name) if row.is_governed and not row.is_ready else None
            counts[state or row.state] = counts.get(state or row.state, 0) + 1
        return dict(sorted(counts.items(), key=lambda one: (-one[1], one[0])))

    def _of_programs(self) -> Iterator[Concern]:
        for one in self.programs or ():
            if not one.pods:
                look = f"kubectl get all -n {self.namespace}"
                yield Concern(f"there is no pod of the {one.component} in {self.namespace}", look)
            elif waited := [pod for pod in one.unready if pod.node not in self.away]:
                named = _named(f"{pod.name} ({pod.problem})" for pod in waited)
                what = f"{plural(len(waited), 'pod')} of the {one.component} not ready: {named}"
                look = f"kubectl get pods -n {self.namespace} -l {LABEL}={one.component}"
                yield Concern(what, look)

    def _of_policies(self) -> Iterator[Concern]:
        for policy in self.policies:
            explained = explain_policy(policy)
            if not explained.is_well:
                reason = f" ({explained.reason})" if explained.reason else ""
                why = f": {explained.why[0]}" if explained.why and explained.why[0] else ""
                what = f"policy {policy.name} {explained.verdict}{reason}{why}"
                yield Concern(what, f"numapin explain policy/{policy.name}")

    def _of_nodes(self) -> Iterator[Concern]:
        unready: dict[str, list[NodeRow]] = {}
        for row in self.waited_for:
            if not row.is_ready:
                unready.setdefault(row.readiness, []).append(row)
        for reason, rows in sorted(unready.items(), key=lambda one: (-len(one[1]), one[0])):
            why = meaning_of(reason) or rows[0].message
            names = _named(row.name for row in rows)
            what = f"{plural(len(rows), 'node')} {reason}: {names}" + (f"; {why}" if why else "")
            yield Concern(what, f"numapin explain node/{rows[0].name}")

    def _in_spite(self) -> Iterator[Concern]:
        """What a person should know although all is Ready."""
        yield from self._of_versions()
        if away := [row.name for row in self.rows if row.is_governed and row.name in self.away]:
            what = f"{plural(len(away), 'node')} cannot be served: {_named(away)}"
            reasons = sorted({self.away[name] for name in away})
            yield Concern(f"{what} ({', '.join(reasons)})", "kubectl get nodes", is_ready=True)
        for mode, meaning in _APART.items():
            if rows := [row.name for row in self.rows if row.node_mode == mode]:
                what = f"{plural(len(rows), 'node')} {mode.lower()}: {_named(rows)}; {meaning}"
                yield Concern(what, f"numapin resume {rows[0]}", is_ready=True)
        if refused := [row for row in self.rows if row.refused]:
            count = sum(row.refused for row in refused)
            what = f"{plural(count, 'pod')} refused on {plural(len(refused), 'node')}"
            named = _named(row.name for row in sorted(refused, key=lambda row: -row.refused))
            yield Concern(f"{what}: {named}", "numapin get --sort refused", is_ready=True)

    def _of_versions(self) -> Iterator[Concern]:
        versions = sorted({each for one in self.programs or () for each in one.versions})
        if len(versions) > 1:
            what = f"{len(versions)} versions of numapin run: {', '.join(versions)}"
            others = [
                f"{one.component} {version} on {_named(nodes)}"
                for one in self.programs or ()
                for version, nodes in one.others.items()
            ]
            yield Concern("; ".join([what, *others]), is_ready=True)

    def to_json(self) -> Json:
        """Everything for scripts."""
        return {
            "ready": self.is_ready,
            "client": self.client,
            "kubernetes": self.kubernetes,
            "servedVersions": list(self.served),
            "programs": None if self.programs is None else [one.to_json() for one in self.programs],
            "policies": [_policy(one) for one in self.policies],
            "nodes": {"total": len(self.rows), "states": dict(self.states)},
            "attention": [
                {"what": one.what, "look": one.look or None, "blocks": not one.is_ready}
                for one in self.concerns
            ],
        }


def _policy(policy: PolicyView) -> Json:
    status = policy.status
    return {
        "policy": policy.name,
        "mode": policy.spec.mode,
        "selected": status.nodes_selected,
        "inForce": status.nodes_in_force,
        "stalled": status.nodes_stalled,
        "notServed": status.nodes_not_served,
        "refused": status.refused,
        "ready": explain_policy(policy).is_well,
    }


def _named(names: Iterable[str]) -> str:
    return first_texts(list(names), _NAMED)
