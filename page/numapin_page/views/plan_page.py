"""What an edit would change on a node: what the operator would write, beside what is there.

Does no I/O.
"""

from typing import Any, Final

from numapin_api.conditions.reasons import Reason
from numapin_api.schema.plain_assignment import NodeAssignmentSpec
from numapin_cli.what_if import Foreseen
from numapin_operator.nodes.decide import Write
from numapin_operator.nodes.moves.changes import planned_moves
from numapin_page.views.machine import machine
from numapin_page.views.node_page import cpu_uses

Json = dict[str, Any]

_NOTHING: Final = NodeAssignmentSpec(mode="None")


def changes_anything(each: Foreseen) -> bool:
    """Whether a node would change, or cannot have the policy."""
    return each.write is not Write.NOTHING or each.is_stalled


def plan_row(each: Foreseen) -> Json:
    """The line of a node that would change."""
    before, after = each.before or _NOTHING, each.spec or _NOTHING
    return {
        "name": each.picture.name,
        "policy": each.outcome.policy if each.outcome else "",
        "isStalled": each.is_stalled,
        "said": "" if each.outcome and each.outcome.reason == Reason.IN_FORCE else each.said,
        "mode": [before.mode, after.mode],
        "exclusive": [len(before.exclusive_cpus), len(after.exclusive_cpus)],
        "reserved": [_reserved(before), _reserved(after)],
        "refused": [before.refused_count, after.refused_count],
        "moved": _moved(before, after),
    }


def plan_node(each: Foreseen) -> Json:
    """A node before and after, on its machine."""
    assignment = each.picture.assignment
    topology = assignment.topology if assignment else None
    before, after = each.before or _NOTHING, each.spec or _NOTHING
    entries = {one.key: one for one in (*before.containers, *after.containers)}
    number = {key: index for index, key in enumerate(entries)}
    page: Json = {
        "row": plan_row(each),
        "containers": [
            {"namespace": one.namespace, "pod": one.pod, "container": one.container}
            | {"before": _cpus(before, one.key), "after": _cpus(after, one.key)}
            for one in entries.values()
        ],
        "refused": [
            {"namespace": one.namespace, "pod": one.pod, "reason": one.reason}
            | {"container": one.container or "", "message": one.message}
            for one in after.refused
        ],
        "moves": list(planned_moves(each.before, each.spec, topology)),
    }
    if topology is not None:
        page["machine"] = machine(topology)
        page["before"] = cpu_uses(before, topology, number)
        page["after"] = cpu_uses(after, topology, number)
    return page


def _reserved(spec: NodeAssignmentSpec) -> str:
    return str(spec.pools.reserved) if spec.pools else ""


def _cpus(spec: NodeAssignmentSpec, key: tuple[str, str]) -> str:
    return next((str(one.cpus) for one in spec.containers if one.key == key), "")


def _moved(before: NodeAssignmentSpec, after: NodeAssignmentSpec) -> int:
    """How many containers would have other CPUs, have some first, or lose theirs."""
    had = {one.key: one.cpus for one in before.containers if one.cpus}
    has = {one.key: one.cpus for one in after.containers if one.cpus}
    return sum(had.get(key) != has.get(key) for key in {*had, *has})
