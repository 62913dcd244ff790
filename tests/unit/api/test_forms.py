"""An assignment as entries and as lines, and a report as a status, say the same."""

from random import Random
from typing import Any

import pytest

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.forms.joined import joined
from numapin_api.forms.lines import print_line
from numapin_api.forms.report import Generation, Seen, report_fields, status_of
from numapin_api.forms.spec import has_lines, read_spec, refusals_of, spec_with_lines
from numapin_api.nodeassignment import ReportedState
from numapin_api.schema.plain import ContainerAssignment, ContainerStatus

Json = dict[str, Any]

REFUSAL: Json = {
    "podUID": "u-9",
    "namespace": "team",
    "pod": "large-0",
    "reason": "NotEnoughCPUs",
    "message": "wanted 64 CPUs",
}
ENTRY: Json = {
    "podUID": "u-1",
    "namespace": "team",
    "pod": "engine-0",
    "container": "engine",
    "cpus": "2-3",
    "mems": "0",
    "exclusive": True,
}
SPEC: Json = {
    "policy": {"name": "fast", "generation": 3},
    "mode": "Static",
    "pools": {"reserved": "0", "shared": "0-1"},
    "cpuQuota": "Unlimited",
    "isolation": "Cpuset",
    "containers": [ENTRY],
    "refused": [REFUSAL],
    "refusedOmitted": 2,
    "releaseAt": "2026-03-01T09:00:00Z",
}


def _body(spec: Json, status: Json | None = None, generation: int = 7) -> Json:
    metadata = {"name": "node-1", "uid": "a-1", "generation": generation}
    return {"metadata": metadata, "spec": spec, "status": status or {}}


def test_both_forms_are_read_alike() -> None:
    lines = [print_line(ENTRY, 4)]
    later = spec_with_lines(SPEC, lines)
    assert later["pools"] == {"reservedCPUs": "0", "sharedCPUs": "0-1"}
    assert later["releaseTime"] == "2026-03-01T09:00:00Z"
    assert not later.keys() & {"containers", "refused", "releaseAt"}
    assert has_lines(later)
    assert not has_lines(SPEC)
    read = read_spec(_body(later, refusals_of(SPEC)))
    assert (read.wire, read.lines, read.since) == (SPEC, tuple(lines), (4,))
    old = read_spec(_body(SPEC))
    assert (old.wire, old.since) == (SPEC, (7,))


def test_a_spec_without_pools_may_be_of_either_form() -> None:
    spec = {"policy": {"name": "fast", "generation": 1}, "mode": "Static"}
    assert spec_with_lines(spec, []) == spec
    assert read_spec(_body(spec)).wire == spec
    assert not has_lines(spec)


def test_every_wrong_line_is_named_and_no_container_is_read() -> None:
    spec = spec_with_lines(SPEC, ["nonsense", print_line(ENTRY, 4), "team/a b cpus=1"])
    read = read_spec(_body(spec))
    assert [one.split(": ")[0] for one in read.faults] == ["spec.assigned[0]", "spec.assigned[2]"]
    assert "containers" not in read.wire


STRANGE: list[Any] = [None, 7, "text", [], {"assigned": 7}, {"pools": 7}, {"pools": []}]


@pytest.mark.parametrize("strange", STRANGE)
def test_a_spec_of_any_shape_is_left_to_the_schema(strange: Any) -> None:
    read_spec(_body(strange, None))
    has_lines(strange if isinstance(strange, dict) else {})


def _entry(number: int, random: Random) -> ContainerAssignment:
    has_cpus = random.random() < 0.8
    return ContainerAssignment(
        pod_uid=f"u-{number // 2}",
        namespace="team",
        pod=f"pod-{number // 2}",
        container=f"c-{number}",
        cpus=CpuSet([8 + number]) if has_cpus else CpuSet(),
        mems=MemSet([number % 2]) if random.random() < 0.5 else MemSet(),
        exclusive=has_cpus,
    )


def _state(one: ContainerAssignment, random: Random) -> ContainerStatus:
    """What the kernel has: mostly what the entry says."""
    cpus, mems, exclusive = one.cpus or CpuSet([0, 1]), one.mems, one.exclusive
    if random.random() < 0.3:
        cpus, exclusive = random.choice([(cpus, False), (CpuSet([5]), False)])
    if random.random() < 0.1:
        mems = MemSet([7])
    return ContainerStatus(one.pod_uid, one.container, cpus, mems, exclusive)


@pytest.mark.parametrize("seed", range(300))
def test_a_report_says_what_a_whole_status_says(seed: int) -> None:
    random = Random(seed)
    entries = [_entry(number, random) for number in range(random.randint(0, 12))]
    running = {one.pod_uid for one in entries if random.random() < 0.8}
    found = [
        _state(one, random) for one in entries if one.pod_uid in running and random.random() < 0.9
    ]
    status = {"pools": {"shared": "0-1"}, "driftCount": 3, "conditions": [{"type": "Ready"}]}
    assigned = {one.key: one for one in entries}
    seen = Generation("a-1", 7)
    report = report_fields(status, found, sorted(running), assigned, Seen(seen, seen))
    back = status_of(report, "a-1", 7, entries, [random.randint(0, 7) for _ in entries])
    any_node = {one.key for one in entries if not one.mems}
    any_node -= {(one["podUID"], one["container"]) for one in report.get("differences", ())}
    expected = [one.to_wire() | ({"mems": ""} if one.key in any_node else {}) for one in found]
    key = "podUID", "container"
    in_order = sorted(back["containers"], key=lambda one: [one[part] for part in key])
    assert in_order == sorted(expected, key=lambda one: [one[part] for part in key])
    assert back["running"] == sorted(running)
    assert (back["driftCount"], back["observedGeneration"]) == (3, 7)


def test_a_count_of_zero_is_written_and_what_is_empty_is_not() -> None:
    """`kubectl get nodereports` prints it."""
    nothing = {"driftCount": 0, "driftCauses": {}, "claims": [], "bootID": ""}
    seen = Generation("a-1", 7)
    report = report_fields(nothing, [], [], {}, Seen(seen, seen))
    assert report.keys() == {"driftCount", "observed", "enforced"}


def _report(**changed: Any) -> Json:
    seen = {"uid": "a-1", "generation": 7}
    return {"observed": seen, "enforced": seen, "pools": {"shared": "0-1"}} | changed


PLAIN = ContainerAssignment.from_wire(ENTRY)


def test_a_line_that_is_newer_than_the_report_runs_and_is_not_in_force() -> None:
    found = status_of(_report(notRunning=["u-1"]), "a-1", 8, [PLAIN], [8])
    assert (found["running"], found["containers"]) == (["u-1"], [])


def test_a_pod_that_the_report_knows_and_does_not_see_is_gone() -> None:
    assert status_of(_report(notRunning=["u-1"]), "a-1", 7, [PLAIN], [7])["running"] == []


def test_a_report_from_the_future_releases_nothing() -> None:
    seen = {"uid": "a-1", "generation": 9}
    report = _report(observed=seen, enforced=seen, notRunning=["u-1"])
    found = status_of(report, "a-1", 8, [PLAIN], [2])
    assert (found["running"], found["containers"]) == (["u-1"], [])


def test_a_report_about_an_object_that_was_deleted_says_nothing() -> None:
    assert status_of(_report(), "a-2", 1, [PLAIN], [1]) == {}


def test_a_spec_that_was_refused_leaves_the_last_one_in_force() -> None:
    report = _report(observed={"uid": "a-1", "generation": 8})
    moved = ContainerAssignment.from_wire(ENTRY | {"cpus": "4-5"})
    found = status_of(report, "a-1", 8, [moved], [8])
    assert (found["running"], found["containers"]) == (["u-1"], [])
    assert found["observedGeneration"] == 8


def test_a_pod_that_only_a_refused_spec_lists_is_not_there() -> None:
    """Else nobody could take it out of the spec again."""
    stranger = ContainerAssignment.from_wire(ENTRY | {"podUID": "u-2"})
    old, new = Generation("a-1", 7), Generation("a-1", 8)
    report = report_fields(
        {}, [], ["u-1"], {PLAIN.key: PLAIN}, Seen(new, old, frozenset({"u-1", "u-2"}))
    )
    assert report["notRunning"] == ["u-1/engine", "u-2"]
    assert status_of(report, "a-1", 8, [PLAIN, stranger], [7, 8])["running"] == ["u-1"]
    assert status_of(report, "a-1", 9, [PLAIN, stranger], [7, 9])["running"] == ["u-1", "u-2"]


def test_whatever_an_enforcer_reports_in_either_object_comes_through() -> None:
    """A new field of the model needs no line here or there."""
    names = [one.alias or name for name, one in ReportedState.model_fields.items()]
    state = {name: {"shared": "0-1"} for name in names}
    seen = Generation("a-1", 7)
    report = report_fields(state, [], [], {}, Seen(seen, seen))
    assert report.keys() == {*names, "observed", "enforced"}
    back = status_of(report, "a-1", 7, [], [])
    assert back.keys() == {*names, "observedGeneration", "containers", "running"}


def test_tools_see_one_object() -> None:
    later = spec_with_lines(SPEC, [print_line(ENTRY, 4)])
    topology = {"status": {"cores": ["0,4"]}}
    found = joined(_body(later, refusals_of(SPEC)), {"status": _report()}, topology)
    assert found["spec"] == SPEC
    assert found["status"]["containers"] == [
        {key: ENTRY[key] for key in ("podUID", "container", "cpus", "mems", "exclusive")}
    ]
    assert found["status"]["topology"] == {"cores": ["0,4"]}


def test_tools_see_what_an_older_enforcer_reports() -> None:
    status = {"observedGeneration": 7, "running": ["u-1"]}
    assert joined(_body(SPEC, status), {"status": _report()})["status"] == status
