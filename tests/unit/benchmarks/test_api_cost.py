"""The layouts whose costs are compared say the same, and the table says what was measured."""

import pytest
import yaml

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.nodeassignment import NodeAssignmentSpec, NodeAssignmentStatus
from numapin_benchmarks.api_cost.decoding import node_objects
from numapin_benchmarks.api_cost.layouts import kinds
from numapin_benchmarks.api_cost.layouts.builtin import config_map
from numapin_benchmarks.api_cost.layouts.entries import (
    Entry,
    cpus_for,
    hardware,
    placed,
    reserved,
    shared,
    topology,
)
from numapin_benchmarks.api_cost.layouts.split import apart, for_each_pod, recent, sharded
from numapin_benchmarks.api_cost.layouts.whole import (
    FORMS,
    NODE,
    Call,
    Layout,
    compact,
    slim,
    today,
)
from numapin_benchmarks.api_cost.rows import Cost, Measured, placed_pod, table
from numapin_benchmarks.api_cost.values import PARSERS, Plain, PlainNode, parse_line
from numapin_operator.observe.assignments.view import AssignmentView

COUNTS = (15, 125, 250)
ALL = {
    "today": today("today", kinds.today("today")),
    **{form: compact(form, form) for form in FORMS},
    "apart": apart("apart"),
    "recent": slim(recent("recent")),
    "pods": for_each_pod("pods", own_status=True),
    "pods-header": for_each_pod("pods-header", own_status=False),
    "shards": sharded("shards"),
    "configmap": config_map("configmap"),
}


@pytest.mark.parametrize("count", COUNTS)
def test_the_containers_of_a_node_fit_on_its_machine_and_share_no_cpu(count: int) -> None:
    sets = [CpuSet.parse(one.cpus) for one in placed(count, 0)]
    assert len(CpuSet.union(sets)) == 2 * count <= cpus_for(count)
    rest = CpuSet.parse(shared(count)) | CpuSet.parse(reserved(count))
    assert not rest & CpuSet.union(sets)


@pytest.mark.parametrize("count", COUNTS)
def test_each_container_has_a_core_of_its_numa_node(count: int) -> None:
    machine = topology(count)
    assert len(machine.numa_cpus) == len(machine.socket_cpus) == 2
    for one in placed(count, 0):
        cpus = CpuSet.parse(one.cpus)
        assert cpus in machine.core_cpus.values()
        assert cpus <= machine.numa_cpus[int(one.mems)]


@pytest.mark.parametrize("count", COUNTS)
def test_the_next_pod_takes_the_cpus_of_the_one_that_ended(count: int) -> None:
    before, after = list(placed(count, 4)), list(placed(count, 5))
    assert before[1:] == after[:-1]
    assert before[0].cpus == after[-1].cpus
    assert before[0].uid != after[-1].uid


def test_todays_objects_are_valid() -> None:
    (one,) = node_objects("today", 3, 15)
    assert AssignmentView.decode(one).problem is None
    NodeAssignmentSpec.model_validate(one["spec"])
    NodeAssignmentStatus.model_validate(one["status"])
    assert one["status"]["topology"] != hardware(15)  # its memory differs


@pytest.mark.parametrize("layout", ["lines", "map", "text"])
def test_compact_layouts_say_what_todays_says(layout: str) -> None:
    (one,), (old,) = node_objects(layout, 3, 15), node_objects("today", 3, 15)
    decoded = PARSERS[layout](one)
    assert isinstance(decoded, PlainNode)
    assert [
        (entry.uid, entry.pod, str(entry.cpus), str(entry.mems)) for entry in decoded.containers
    ] == [
        (entry["podUID"], entry["pod"], entry["cpus"], entry["mems"])
        for entry in old["spec"]["containers"]
    ]


def test_a_line_is_read_as_it_was_written() -> None:
    one = Entry(7, 15)
    assert parse_line(one.line(3)) == Plain(
        one.namespace,
        one.pod,
        "engine",
        one.uid,
        CpuSet.parse(one.cpus),
        MemSet.parse(one.mems),
        f"{one.mems}:1Gi",
        3,
    )


def test_an_object_for_each_pod_says_the_same() -> None:
    found = [PARSERS["pods"](one) for one in node_objects("pods", 0, 15)]
    assert [one.cpus for one in found] == [CpuSet.parse(one.cpus) for one in placed(15, 0)]


def stored(calls: list[Call]) -> dict[str, dict[str, object]]:
    """What an API server would have after these requests."""
    found = {}
    for call in calls:
        name = f"/{call.body['metadata']['name']}" if call.method == "POST" else ""
        metadata = {"name": NODE, "uid": "u", "resourceVersion": "7"}
        body = {"metadata": metadata, "spec": call.body.get("spec", {})}
        found[call.path.removesuffix("/status") + name] = body
    return found


@pytest.mark.parametrize("layout", ALL.values(), ids=ALL)
@pytest.mark.parametrize("count", COUNTS)
def test_each_write_changes_something_with_each_step(layout: Layout, count: int) -> None:
    known = stored(layout.begin(count))
    for write in layout.writes(count):
        first, second = write.call(1, known), write.call(2, known)
        assert (first.path, first.body) != (second.path, second.body)


@pytest.mark.parametrize("layout", ALL.values(), ids=ALL)
def test_a_placed_pod_is_one_write_of_each(layout: Layout) -> None:
    who = [write.who for write in layout.writes(15)]
    assert (who.count("operator"), who.count("enforcer")) == (1, 1)


def test_definitions_of_layouts_are_apart_and_can_be_written_as_yaml() -> None:
    names = [one["metadata"]["name"] for layout in ALL.values() for one in layout.kinds]
    assert len(names) == len(set(names))
    assert all(yaml.safe_dump(one) for layout in ALL.values() for one in layout.kinds)


def test_the_definition_without_rules_differs_in_rules_only() -> None:
    assert "x-kubernetes-validations" in str(kinds.today("a"))
    assert "x-kubernetes-validations" not in str(kinds.without_rules("a"))


def measured(who: str, api_ms: float, count: int = 15) -> Measured:
    return Measured("today", count, who, "a write", 0, Cost(api_ms, 0.0, 2000.0, 9000, 1.0))


def test_a_placed_pod_counts_each_report_of_the_enforcer() -> None:
    found = [measured("operator", 4.0), measured("enforcer", 3.0), measured("other", 100.0)]
    assert placed_pod(found) == 7.0
    assert placed_pod(found, reports=2) == 10.0


def test_the_table_compares_with_the_creation_of_pods_in_the_same_run() -> None:
    found = [measured("base", 4.0, 0), measured("base", 6.0, 0)]
    found += [measured("operator", 8.0), measured("enforcer", 2.0)]
    head, *_, line = table(found)
    assert head == "creation of a pod: 5.00 ms"
    assert line == "| today | 15 | 9.0 | 8.00 | 2.00 | 4.0 | 2.00 |"
