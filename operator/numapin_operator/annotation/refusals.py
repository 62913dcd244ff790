"""What the annotation `numapin.io/refused` of each pod says, by the assignment of its node.

It is for people. Does no I/O.
"""

from typing import Final

from numapin_api.meta.modes import is_enforced
from numapin_api.schema.plain_assignment import NodeAssignmentSpec
from numapin_api.text import cut_text

LONGEST: Final = 1024


def refusals(spec: NodeAssignmentSpec) -> dict[str, str]:
    """The text for each refused pod, by UID: the reason, and the numbers of its first container.

    What is only planned is told nobody.
    """
    texts: dict[str, str] = {}
    if not is_enforced(spec.mode):
        return texts
    for one in spec.refused:
        where = f"container {one.container}: " if one.container else ""
        texts.setdefault(one.pod_uid, cut_text(f"{one.reason}: {where}{one.message}", LONGEST))
    return texts
