"""What still counts of a policy whose spec is invalid, which only happens if the CRD is not ours.

Does no I/O.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from pydantic import ValidationError

from numapin_api.cpupolicy import CpuPolicySpec

NO_NODE: Final = {"": ""}
"""A selector that no node matches: a label's key is never empty."""


def remaining_spec(raw: object, status: object) -> CpuPolicySpec:
    """What an invalid policy says about the nodes that it selects; none if that is invalid too.

    And how long they keep what they have once it goes.
    """
    fields = raw if isinstance(raw, Mapping) else {"nodeSelector": None}
    selector, priority = fields.get("nodeSelector", {}), fields.get("priority")
    if not isinstance(selector, Mapping) or not all(isinstance(v, str) for v in selector.values()):
        selector = NO_NODE
    nodes = None
    try:
        nodes = CpuPolicySpec.model_validate({"nodes": fields.get("nodes")}).nodes
    except ValidationError:
        selector = NO_NODE
    return CpuPolicySpec.model_construct(
        node_selector=dict(selector),
        nodes=nodes,
        priority=priority if isinstance(priority, int) else 0,
        release_delay=_release_delay(raw, status),
    )


def _release_delay(raw: object, status: object) -> str:
    """The delay of an invalid policy: as it says, else as it said when it reached all nodes."""
    done = status.get("rolledOut") if isinstance(status, Mapping) else None
    for spec in (raw, done.get("spec") if isinstance(done, Mapping) else None):
        if (found := valid_delay(spec)) is not None:
            return found
    return CpuPolicySpec().release_delay


def valid_delay(spec: object) -> str | None:
    """The delay that a spec names; None if it names none, or an invalid one."""
    if isinstance(spec, Mapping) and "releaseDelay" in spec:
        with suppress(ValidationError):
            found = CpuPolicySpec.model_validate({"releaseDelay": spec["releaseDelay"]})
            return found.release_delay
    return None
