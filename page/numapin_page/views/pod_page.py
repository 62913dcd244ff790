"""A pod's way from its creation to its CPUs, step by step, and what `numapin explain` says.

Does no I/O.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from numapin_cli.advice.explanation import Explanation
from numapin_cli.live.node_state import IN_FORCE, NodeState, memory_text
from numapin_operator.observe.node_status import json_object, json_objects

Json = dict[str, Any]

DONE: Final = "done"
WAITING: Final = "waiting"
FAILED: Final = "failed"
NOT_NEEDED: Final = "notNeeded"


def pod_page(pod: Mapping[str, Any], explained: Explanation, state: NodeState) -> Json:
    """All that the page shows of a pod that exists.

    Args:
        pod: the pod.
        explained: the answer about it.
        state: its node; one without a name if it is bound to none.
    """
    return {"explanation": explained.to_json(), "steps": list(_steps(pod, explained, state))}


def _step(what: str, state: str, text: str = "", time: str = "") -> Json:
    return {"what": what, "state": state, "text": text, "time": time}


def _steps(pod: Mapping[str, Any], explained: Explanation, state: NodeState) -> Iterator[Json]:
    metadata, conditions = json_object(pod, "metadata"), _conditions(pod)
    yield _step("Created", DONE, time=str(metadata.get("creationTimestamp") or ""))
    node = state.name
    scheduled = conditions.get("PodScheduled", {})
    time = str(scheduled.get("lastTransitionTime") or "")
    if not node:
        yield _step("Bound to a node", WAITING, str(scheduled.get("message") or ""), time)
        return
    yield _step("Bound to a node", DONE, node, time)
    if not explained.policy:
        yield _step("Governed by a policy", NOT_NEEDED, f"no policy selects node {node}")
        return
    yield _step("Governed by a policy", DONE, explained.policy)
    yield from _decided(str(metadata.get("uid")), explained, state)


def _decided(uid: str, explained: Explanation, state: NodeState) -> Iterator[Json]:
    spec = state.view.spec if state.view else None
    refused = [one for one in (spec.refused if spec else ()) if one.pod_uid == uid]
    entries = [one for one in (spec.containers if spec else ()) if one.pod_uid == uid]
    for one in refused:
        yield _step("CPUs decided", FAILED, f"{one.reason}: {one.message}")
    if not entries:
        if not refused:
            kind = NOT_NEEDED if explained.is_well else WAITING
            yield _step("CPUs decided", kind, explained.verdict)
        return
    for entry in entries:
        parts = [f"CPUs {entry.cpus}" if entry.cpus else "", f"NUMA {entry.mems}"]
        parts = [*parts[: 1 + bool(entry.mems)], memory_text(entry)]
        text = f"{entry.container}: {', '.join(filter(None, parts))}"
        yield _step("CPUs decided", DONE, text)
    for entry in entries:
        actual = state.in_kernel(entry)
        is_there = actual == IN_FORCE
        text = entry.container if is_there else f"{entry.container}: {actual}"
        yield _step("In the kernel", DONE if is_there else WAITING, text)


def _conditions(pod: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    listed = json_objects(json_object(pod, "status").get("conditions"))
    return {str(one.get("type")): one for one in listed}
