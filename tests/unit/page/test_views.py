"""What the page shows of nodes and pods of a cluster whose operator has decided."""

import json
from pathlib import Path

import pytest

from numapin_cli.inputs.objects import read_objects
from numapin_page.live.answers import FileAnswers
from numapin_page.live.file_parts import FileParts
from numapin_page.live.fleet import Fleet
from numapin_page.views.node_page import amounts_left, node_page
from support.page.pictured_cluster import HOSTILE, dump, fleet


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("page") / "cluster.json"
    found.write_text(dump(fleet()))
    return found


@pytest.fixture(scope="module")
def parts(file: Path) -> FileParts:
    return FileParts(read_objects([file], []), str(file))


async def rows(parts: FileParts) -> dict[str, dict[str, object]]:
    lines = Fleet()
    lines.changed(parts.names())
    await lines.refresh(parts)
    return {name: json.loads(text) for name, text in lines.rows.items()}


async def test_each_node_has_the_state_that_is_seen_first(parts: FileParts) -> None:
    found = await rows(parts)
    assert {name: row["kind"] for name, row in found.items()} == {
        "laptop": "ready",
        "xeon": "fragmented",
        "epyc": "ready",
        "power": "ready",
        "full": "full",
        "stuck": "stalled",
        "drifts": "ready",
        "spare": "ungoverned",
    }
    assert (found["stuck"]["reason"], found["stuck"]["message"]) == ("KubeletCPUManager", HOSTILE)
    assert found["drifts"]["drift"] == 7
    assert found["full"]["refused"] == 1
    assert found["spare"]["fits"] == [0] * 7


async def test_its_capacity_is_what_the_operator_counts(parts: FileParts, file: Path) -> None:
    """By CPUs, on each NUMA node of each machine."""
    answers = FileAnswers(read_objects([file], []))
    for name in ("laptop", "xeon", "epyc", "power", "full"):
        state = parts.state(name)
        page = node_page(state, parts.beside(name, state.policy))
        amounts, why = await answers.amounts(name)
        assert why == ""
        counted = {number: found["cpu"] for number, found in amounts.items()}
        shown = {one["numaNode"]: (one["allocatable"], one["free"]) for one in page["rooms"]}
        assert shown == {
            number: (one.allocatable, one.available) for number, one in counted.items()
        }


def page_of(parts: FileParts, name: str) -> dict[str, object]:
    state = parts.state(name)
    return node_page(state, parts.beside(name, state.policy))


def test_each_cpu_of_a_machine_is_shown_once_with_who_has_it(parts: FileParts) -> None:
    page = json.loads(json.dumps(page_of(parts, "epyc")))
    boxes = page["machine"]["boxes"]
    caches = [cache for socket in boxes for numa in socket["boxes"] for cache in numa["boxes"]]
    assert (len(boxes), len(caches), {one["kind"] for one in caches}) == (2, 16, {"cache"})
    shown = [cpu for one in caches for core in one["cores"] for cpu in core]
    assert sorted(shown) == list(range(128))
    assert page["cpus"].keys() == {str(cpu) for cpu in range(128)}
    held = [cpu for cpu, use in page["cpus"].items() if use == 0]
    assert held == [str(cpu) for cpu in range(2, 8)]
    first = page["containers"][0]
    assert (first["cpus"], first["numaNodes"], first["inKernel"]) == ("2-7", "0", "")
    assert [one["pod"] for one in page["refused"]] == ["epyc-9"]


@pytest.mark.parametrize("name", ["laptop", "xeon", "power"])
def test_each_machine_is_shown_whole(parts: FileParts, name: str) -> None:
    page = json.loads(json.dumps(page_of(parts, name)))

    def cpus(box: dict[str, list[dict[str, object]]]) -> list[object]:
        inner = [cpu for one in box.get("boxes", ()) for cpu in cpus(one)]  # type: ignore[arg-type]
        return [*inner, *(cpu for core in box.get("cores", ()) for cpu in core)]

    shown = [cpu for box in page["machine"]["boxes"] for cpu in cpus(box)]
    assert sorted(map(str, shown)) == sorted(page["cpus"])


def test_a_node_without_a_policy_is_a_page_too(parts: FileParts) -> None:
    page = page_of(parts, "spare")
    assert page.keys() == {"row", "message"}
    assert amounts_left({}, "not allowed") == {"left": [], "leftUnknown": "not allowed"}


async def test_a_refused_pods_way_ends_at_the_refusal(file: Path) -> None:
    page = await FileAnswers(read_objects([file], [])).pod("default", "epyc-9")
    assert [(one["what"], one["state"]) for one in page["steps"]] == [
        ("Created", "done"),
        ("Bound to a node", "done"),
        ("Governed by a policy", "done"),
        ("CPUs decided", "failed"),
    ]
    assert page["explanation"]["remedies"]


async def test_a_placed_pods_way_ends_in_the_kernel(file: Path) -> None:
    page = await FileAnswers(read_objects([file], [])).pod("default", "xeon-0")
    last = page["steps"][-2:]
    assert [(one["what"], one["state"]) for one in last] == [
        ("CPUs decided", "done"),
        ("In the kernel", "done"),
    ]


def test_pods_are_found_by_a_part_of_their_name(parts: FileParts) -> None:
    assert list(parts.with_pod("epyc-9", 50)) == [{"pod": "default/epyc-9", "node": "epyc"}]
    assert len(list(parts.with_pod("epyc", 3))) == 3
    assert list(parts.with_pod("nothing-like-it", 50)) == []
