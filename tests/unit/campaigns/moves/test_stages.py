"""How far a change has come, by the NodeAssignment."""

from typing import Any

import pytest

from numapin_api.nodeassignment import NodeAssignment
from numapin_campaigns.moves.node import misplaced, stage_of
from numapin_campaigns.moves.plan import Stage

AT = "2026-11-24T22:00:31Z"


def entry(pod: str, cpus: str, mems: str, **moving: Any) -> dict[str, Any]:
    return {
        "podUID": f"uid-{pod}",
        "namespace": "default",
        "pod": pod,
        "container": "main",
        "cpus": cpus,
        "mems": mems,
        "exclusive": bool(cpus),
        **({"moving": moving} if moving else {}),
    }


def assignment(*entries: dict[str, Any]) -> NodeAssignment:
    pools = {"reserved": "0", "shared": "0"}
    return NodeAssignment.model_validate(
        {"metadata": {"name": "numa"}, "spec": {"pools": pools, "containers": entries}}
    )


RESTS = entry("resized", "6", "1")
HAS_MOVED = entry("resized", "2", "0")


@pytest.mark.parametrize(
    ("told", "resized", "stage"),
    [
        (entry("told", "4", "1"), RESTS, Stage.ASKED),
        (entry("told", "1,4", "0-1", leaving="4"), RESTS, Stage.BEGUN),
        (entry("told", "1,4", "0-1", leaving="4", at=AT), RESTS, Stage.ANNOUNCED),
        (entry("told", "1", "0", leaving="4", at=AT), RESTS, Stage.LEAVING),
        (entry("told", "1", "0"), RESTS, Stage.ASKED),
        (entry("told", "1", "0"), HAS_MOVED, Stage.DECIDED),
    ],
    ids=["edited", "begun", "announced", "leaving", "the first has moved", "both have"],
)
def test_the_stages_of_a_move(told: dict[str, Any], resized: dict[str, Any], stage: Stage) -> None:
    assert stage_of(assignment(told, resized), 0, "1") == stage


TOLD = entry("told", "4", "1")


@pytest.mark.parametrize(
    ("cpu", "resized", "stage"),
    [
        ("2", entry("resized", "6", "1"), Stage.ASKED),
        ("2", entry("resized", "6-7", "1"), Stage.DECIDED),
        ("1", entry("resized", "6-7", "1"), Stage.ASKED),
        ("1", entry("resized", "6-7", "1", leaving="7", at=AT), Stage.ANNOUNCED),
        ("1500m", entry("resized", "6", "1"), Stage.ASKED),
        ("1500m", entry("resized", "", "1"), Stage.DECIDED),
        ("1", entry("resized", "", "1"), Stage.ASKED),
    ],
)
def test_the_stages_of_a_resize(cpu: str, resized: dict[str, Any], stage: Stage) -> None:
    assert stage_of(assignment(TOLD, resized), 1, cpu) == stage


def test_what_is_not_as_it_was_asked_for_is_named() -> None:
    found = [*misplaced(assignment(entry("told", "0,4", "0-1", leaving="4")), 0, "2")]
    assert found == ["resized has no CPUs of its own", "told has 2 CPUs"]
    found = [*misplaced(assignment(entry("told", "0", "0"), RESTS), 0, "1")]
    assert found == ["resized is on NUMA nodes 1"]
    assert [*misplaced(assignment(entry("told", "0", "0")), 0, "1500m")] == []
