"""Only a report of lines whose containers have not started may wait for them."""

from typing import Any

import pytest

from numapin_enforcer.status.publishing.hold import may_wait
from numapin_enforcer.status.publishing.merge_patch import merge_patch

READY = {"type": "Ready", "status": "True", "reason": "Enforced", "message": "fine"}


def status(generation: int, **fields: Any) -> dict[str, Any]:
    seen = {"uid": "u1", "generation": generation}
    pools = {"reserved": "0", "shared": "0-7", "exclusive": ""}
    conditions = [READY | {"observedGeneration": generation}]
    made = {"observed": seen, "enforced": seen, "pools": pools, "conditions": conditions}
    return made | fields


POOLS = status(1)["pools"]
NEW = status(2, notRunning=["a"])


@pytest.mark.parametrize(
    ("before", "after", "waits"),
    [
        (status(1), NEW, True),
        (status(1), NEW | {"pools": POOLS | {"shared": "0-5"}}, True),
        (status(1), NEW | {"notRunning": ["a/main", "b"]}, True),
        (status(1, notRunning=["b"]), NEW | {"notRunning": ["a", "b"]}, True),
        (status(1), status(2), False),
        (status(1, notRunning=["b"]), NEW, False),
        (status(1, notRunning=["a"]), NEW, False),
        (status(1), NEW | {"pools": POOLS | {"shared": "0-8"}}, False),
        (status(1), NEW | {"pools": POOLS | {"exclusive": "6"}}, False),
        (status(1), NEW | {"pools": POOLS | {"reserved": "0-1"}}, False),
        (status(1), NEW | {"differences": [{"podUID": "c"}]}, False),
        (status(1), NEW | {"freeHugepages": [{"numaNode": 0}]}, False),
        (status(1), NEW | {"observed": {"uid": "u2", "generation": 1}}, False),
        (status(1), NEW | {"enforced": {"uid": "u2", "generation": 1}}, False),
        (status(1), NEW | {"conditions": [READY | {"status": "False"}]}, False),
        ({}, NEW, False),
    ],
    ids=[
        *("a new line", "the shared pool shrinks", "a sandbox runs", "one more line"),
        *("nothing waits", "another pod runs", "the same pod waits", "the shared pool grows"),
        *("a container has its CPUs", "other reserved CPUs", "a container differs"),
        *("free huge pages", "another object", "of another object", "a condition", "the first"),
    ],
)
def test_what_may_wait(before: dict[str, Any], after: dict[str, Any], waits: bool) -> None:
    changed = frozenset(merge_patch(before, after))
    assert may_wait(before, after, changed) is waits
