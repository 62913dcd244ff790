"""Edits of the policy with which a pod would fit.

Does no I/O.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from numapin_api.cpupolicy import CpuPolicySpec
from numapin_api.meta.wire import WireModel
from numapin_cli.advice.question import Question
from numapin_cli.advice.remedies.remedy import Remedy
from numapin_cli.inputs.policy_rules import refused_fields

_NOTE: Final = "it applies to every node of the policy; numapin plan -o diff shows what changes"

_LOOSER: Final = {
    "SingleNUMANode": ("Restricted", "BestEffort", "None"),
    "Restricted": ("BestEffort", "None"),
    "BestEffort": ("None",),
}
_OTHER_SCOPE: Final = {"Pod": "Container", "Container": "Pod"}
_LESS_BOUND: Final = {"SingleNUMA": ("Preferred", "None"), "Static": ("Preferred", "None")}


def edits(question: Question) -> Iterator[Remedy]:
    """Edits of one field of the governing policy; each alone makes the pod fit.

    The pod need not be created again: an edited policy tries refused pods again.

    Raises:
        TooManyTriesError: enough has been tried.
    """
    ranked = question.state.policies_of(question.node)
    if not ranked:
        return
    governing, done = ranked[0], set[str]()
    is_there = question.pod.node == question.node and not question.pod.deleting
    for field, value in single_edits(governing.spec, question.pod.qos):
        if field in done:
            continue
        spec = edited(governing.spec, field, value)
        if any(True for _ in refused_fields(spec)):
            continue
        base = question.without(()) if is_there else question.after(())
        pod = question.pod if is_there else question.newcomer
        fate = question.tries.plan("edit", question.with_policy(base, spec), pod.uid)
        if fate.fits:
            done.add(field)
            text = f"set {field} of policy {governing.name} to {shown(value)}"
            change = {"policy": governing.name, "spec": _nested(field, value)}
            yield replace(Remedy.by("policy", text, fate, change), note=_NOTE)


def single_edits(spec: CpuPolicySpec, qos: str) -> Iterator[tuple[str, Any]]:
    """Candidate edits of one field each; of one field the mildest first."""
    for policy in _LOOSER.get(spec.topology.policy, ()):
        yield "topology.policy", policy
    for is_set, field, value in (
        (spec.mode == "Static", "mode", "Dynamic"),
        (spec.topology.policy != "None", "topology.scope", _OTHER_SCOPE[spec.topology.scope]),
    ):
        if is_set:
            yield field, value
    for option in ("fullPCPUsOnly", "distributeCPUsAcrossNUMA", "alignBySocket"):
        if spec.options.to_wire()[option]:
            yield f"options.{option}", False
    for policy in _LESS_BOUND.get(spec.memory.policy, ()):
        yield "memory.policy", policy
    if spec.isolated_cpus != "Ignore":
        yield "isolatedCPUs", "Ignore"
    yield from _reserving_less(spec)
    if qos == "Burstable" and qos not in spec.pods.qos_classes:
        yield "pods.qosClasses", [*spec.pods.qos_classes, qos]


def _reserving_less(spec: CpuPolicySpec) -> Iterator[tuple[str, Any]]:
    for count in range((spec.reserved.count or 1) - 1, 0, -1):
        yield "reserved.count", count
    if spec.reserved.strict:
        yield "reserved.strict", False


def edited(spec: CpuPolicySpec, field: str, value: Any) -> CpuPolicySpec:
    """The policy after an edit of one field, such as `topology.policy`."""
    return CpuPolicySpec.model_validate(_merged(spec, _nested(field, value)))


def _merged(spec: WireModel, patch: dict[str, Any]) -> dict[str, Any]:
    wire = spec.to_wire()
    for key, value in patch.items():
        wire[key] = wire[key] | value if isinstance(value, dict) else value
    return wire


def _nested(field: str, value: Any) -> dict[str, Any]:
    outer, _, inner = field.partition(".")
    return {outer: {inner: value} if inner else value}


def shown(value: Any) -> str:
    """A field's value as it is written into YAML."""
    return str(value).lower() if isinstance(value, bool) else str(value).replace("'", "")
