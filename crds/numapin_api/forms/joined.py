"""A NodeAssignment with its report and its hardware, as one object in the form of v1alpha1.

For tools that show or judge a node: they work with one form. Does no I/O.
"""

from collections.abc import Mapping
from typing import Any

from numapin_api.forms.report import status_of
from numapin_api.forms.spec import read_spec, without_refusals
from numapin_api.schema.plain import ContainerAssignment

Json = dict[str, Any]


def joined(
    assignment: Mapping[str, Any],
    report: Mapping[str, Any] | None = None,
    topology: Mapping[str, Any] | None = None,
) -> Json:
    """One object that says all.

    Args:
        assignment: the NodeAssignment, of either form.
        report: the NodeReport; None if there is none.
        topology: the NodeTopology; None if there is none.

    Raises:
        ValueError: a line of the assignment is wrong; the text names it.
    """
    spec = read_spec(assignment)
    if spec.faults:
        raise ValueError("; ".join(spec.faults))
    own = without_refusals(assignment.get("status") or {})
    found = (report or {}).get("status") or {}
    body: Json = dict(assignment) | {"spec": spec.wire}
    if not found or own.get("observedGeneration"):  # the API server fills in 0 where it is unset
        return body | ({"status": own} if own else {})
    metadata = assignment["metadata"]
    entries = [ContainerAssignment.from_wire(one) for one in spec.wire.get("containers") or ()]
    reported = status_of(found, metadata["uid"], metadata["generation"], entries, spec.since)
    hardware = (topology or {}).get("status")
    return body | {"status": own | reported | ({"topology": hardware} if hardware else {})}
